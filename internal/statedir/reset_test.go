package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReset: everything that a landscape creates is deleted, private keys of bastions too, and a reset that was
// interrupted can be run again.
func TestReset(t *testing.T) {
	for name, files := range map[string][]string{
		"whole": {LockFile, RunFile, KubeconfigFile, PortFile, "data/garden/db", "pki/garden/ca.key", "cloud/x",
			"ssh/cli-a/bastion.key", "gardenlite.log", "kubeconfig-seed-local"},
		"interrupted": {LockFile, "ssh/cli-a/bastion.key"},
		"killed":      {LockFile, ".kubeconfig.unfinished-1", ".run.json.unfinished-2"},
		"empty":       nil,
	} {
		dir := filepath.Join(t.TempDir(), "state[")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			file = filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time, nothing is there
			if err := errors.Join(CheckReset(dir), Reset(dir, func() error { return nil })); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something is left: %v", name, err)
		}
	}
}

// TestCheckReset: it returns an error for a directory that is not a landscape's, and for a landscape that is held.
func TestCheckReset(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckReset(dir); err == nil {
		t.Error("a folder that is no landscape's can be deleted")
	}
	held, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock() //nolint:errcheck // the test ends
	if err := CheckReset(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a landscape that runs: %v", err)
	}
	if err := Reset(dir, func() error { return nil }); !errors.Is(err, ErrLocked) {
		t.Errorf("a landscape that runs: %v", err)
	}
}

func TestNames(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(state, "gardenlite", name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, LockFile), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if names := Names(); len(names) != 2 || names[0] != "a" || names[1] != "b" {
		t.Errorf("%v", names)
	}
}

// TestPrepare: only a directory that is new, empty or a landscape's is taken, and no other one is changed.
func TestPrepare(t *testing.T) {
	for name, test := range map[string]struct {
		files []string
		taken bool
	}{
		"empty": {nil, true}, "a landscape's": {[]string{LockFile, RunFile}, true}, "another's": {[]string{"thesis.tex"}, false},
	} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range test.files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := Prepare(dir)
		info, statErr := os.Stat(dir)
		if statErr != nil {
			t.Fatal(statErr)
		}
		if mode := info.Mode().Perm(); (err == nil) != test.taken || (mode == 0o700) != test.taken {
			t.Errorf("%s: %v, mode %o", name, err, mode)
		}
	}
	if dir := filepath.Join(t.TempDir(), "a", "b"); Prepare(dir) != nil {
		t.Error("a directory that does not exist is not made")
	}
}
