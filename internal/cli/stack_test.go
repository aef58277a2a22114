package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleStacks = "../../manifests/stacks"

func TestStackBuild(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mysql.tar")
	var out, errs bytes.Buffer
	args := []string{"stack", "build", filepath.Join(sampleStacks, "mysql"), "--file", file}
	if code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit status %d, errors %q", code, errs.String())
	}
	for _, want := range []string{file, "sha256:", "Cluster", "Deployment/mysql-controller", "mysqlinstances.database.example.org"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not have %q", out.String(), want)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%+v, %v", info, err)
	}

	out.Reset()
	if code := run(t.Context(), append(args, "-o", "json"), streams{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Fatalf("exit status %d, errors %q", code, errs.String())
	}
	var built builtStack
	if err := json.Unmarshal(out.Bytes(), &built); err != nil || built.File != file || len(built.CRDs) != 3 ||
		!strings.HasPrefix(built.Digest, "sha256:") {
		t.Errorf("%+v, %v", built, err)
	}
}

// TestStackBuildDefaultFile: the archive is named after the folder, and warnings go to standard error.
func TestStackBuildDefaultFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "empty")
	writeStackFile(t, dir, "app.yaml", "title: Empty\npermissionScope: Namespaced\n")
	t.Chdir(dir)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"stack", "build", "."}, streams{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Fatalf("exit status %d, errors %q", code, errs.String())
	}
	writeStackFile(t, dir, "app.yaml", "title: Empty\npermissionScope: Namespaced\npackageType: \"\\e[2J\"\n")
	if code := run(t.Context(), []string{"stack", "build", "."}, streams{strings.NewReader(""), &out, &errs}); code != 0 ||
		!strings.Contains(errs.String(), "packageType \ufffd[2J is left aside") {
		t.Errorf("exit status %d, errors %q", code, errs.String())
	}
	if _, err := os.Stat("empty.tar"); err != nil || !strings.Contains(errs.String(), "Warning: there is no install.yaml") ||
		strings.Contains(out.String(), "Warning") {
		t.Errorf("%v, output %q, errors %q", err, out.String(), errs.String())
	}
}

func TestStackBuildRefusals(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "stack.tar")
	writeStackFile(t, dir, "app.yaml", "title: Empty\npermissionScope: Namespaced\n")
	writeStackFile(t, dir, "rbac.yaml", "rules: []\n")
	writeStackFile(t, dir, "other.yaml", "rules: []\n")
	writeStackFile(t, dir, "app.yaml", "title: Refused\n")
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"refused package": {[]string{dir}, exitFailed, "the permissions of a stack are implicit"},
		"all reasons":     {[]string{dir}, exitFailed, "3 reasons:\n- other.yaml is no file of a package"},
		"no package":      {[]string{t.TempDir()}, exitFailed, "no folder .registry"},
		"no folder":       {[]string{filepath.Join(dir, "missing")}, exitFailed, "no such file"},
		"no argument":     {nil, exitUsage, "accepts 1 arg"},
		"unknown format":  {[]string{dir, "-o", "table"}, exitUsage, "one of text, json, yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{"stack", "build", "--file", file}, test.args...)
			code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs})
			if code != test.code || !strings.Contains(errs.String(), test.says) || out.Len() > 0 {
				t.Errorf("exit status %d, output %q, errors %q", code, out.String(), errs.String())
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("something is written")
			}
		})
	}
}

func writeStackFile(t *testing.T, dir, name, text string) {
	t.Helper()
	folder := filepath.Join(dir, ".registry")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
