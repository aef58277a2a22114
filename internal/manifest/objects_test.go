package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gardenlite/gardenlite/manifests"
)

func TestLoad(t *testing.T) {
	objects, err := LoadFS(fstest.MapFS{
		"b.yaml": {Data: []byte(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n---\n\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n")},
		"sub/c.json": {Data: []byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap",` +
			`"metadata":{"name":"c1"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c2"}}]}`)},
		"README.md": {Data: []byte("no manifest")},
		"a.yml":     {Data: []byte("# nothing in it\n")},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	if got := strings.Join(names, " "); got != "b ns c1 c2" {
		t.Errorf("loaded %s", got)
	}
	namespaces, others := split(objects)
	if len(namespaces) != 1 || len(others) != 3 {
		t.Errorf("%d namespaces, %d others", len(namespaces), len(others))
	}
}

func TestLoadErrorsNameTheDocument(t *testing.T) {
	for name, data := range map[string]string{
		"no kind":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\n",
		"no name":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {generateName: a-}\n",
		"not a table": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n- 1\n",
		"not YAML":    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n{{",
	} {
		_, err := decode("dir/file.yaml", []byte(data))
		if err == nil || !strings.Contains(err.Error(), "dir/file.yaml, document 2") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "map[") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck checks that all files that cannot be read are named at once, and that a pipe is not read.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"a.yaml": "{{", "b.json": "[]",
		"c.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	err := Check(dir)
	for _, name := range []string{"a.yaml, document 1", "b.json, document 1: it is no object with apiVersion", "d.yaml: no such file"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not in: %v", name, err)
		}
	}
	if err := Check(filepath.Join(dir, "c.yaml")); err != nil {
		t.Error(err)
	}
	if err := Check(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no manifest in") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := Check(os.DevNull); err != nil {
		t.Errorf("a device: %v", err)
	}
}

func TestOwnManifestsLoad(t *testing.T) {
	for folder, least := range map[string]int{"garden": 20, "landscape": 6, "samples": 2} {
		if objects, err := LoadFS(manifests.FS, folder); err != nil || len(objects) < least {
			t.Errorf("%s: %d objects, %v", folder, len(objects), err)
		}
	}
}
