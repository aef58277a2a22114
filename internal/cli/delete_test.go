package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// landscapeFolder makes the state directory of a landscape that has been stopped.
func landscapeFolder(t *testing.T, state, name string) string {
	t.Helper()
	dir := filepath.Join(state, "gardenlite", name)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, statedir.DataFolder), 0o700),
		os.WriteFile(filepath.Join(dir, statedir.LockFile), nil, 0o600),
		statedir.WriteRun(dir, &statedir.Run{Name: name, Datastore: "sqlite"})); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestListAndDelete: landscapes are listed until they are deleted, and nothing is deleted that is no landscape, or
// another one than the user has named.
func TestListAndDelete(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("KUBECONFIG", filepath.Join(state, "kubeconfig"))
	a, b := landscapeFolder(t, state, "a"), landscapeFolder(t, state, "b")
	alone := landscapeFolder(t, state, "gardenlet-edge")
	if err := os.Remove(filepath.Join(alone, statedir.RunFile)); err != nil {
		t.Fatal(err)
	}
	thesis := filepath.Join(state, "thesis")
	if err := errors.Join(os.Mkdir(thesis, 0o700),
		os.WriteFile(filepath.Join(thesis, "thesis.tex"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line string
		code int
		says string
	}{
		{"list", 0, "Stopped"},
		{"list -o json", 0, `"name": "b"`},
		{"list -o name", exitUsage, "one of table, wide, json, yaml"},
		{"down --all", 0, "No landscape is running."},
		{"down --all --name a", exitUsage, "say one of the two"},
		{"delete a", exitUsage, "--yes"},
		{"delete none --yes", exitFailed, `no landscape "none"`},
		{"delete --yes", exitFailed, `no landscape "default"`},
		{"delete gardenlet-edge --yes", exitFailed, `no landscape "gardenlet-edge"`},
		{"delete --yes --data-dir " + thesis, exitFailed, "nothing was deleted"},
		{"delete b --yes --data-dir " + a, exitFailed, `is "a", not "b"`},
		{"delete a --name b --yes", exitUsage, "say one of them"},
		{"delete a --yes", 0, `"a" is deleted`},
		{"delete --yes --data-dir " + b, 0, `"b" is deleted`},
		{"list", 0, "There are no landscapes."},
		{"list -o json", 0, "[]"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), strings.Fields(test.line), streams{strings.NewReader(""), &out, &out})
		if code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: exit status %d, %s", test.line, code, out.String())
		}
	}
	for _, dir := range []string{alone, thesis} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
