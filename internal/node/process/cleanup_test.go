package process

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestCleanUpInFolderWithBrackets checks that a path is not taken for a pattern.
func TestCleanUpInFolderWithBrackets(t *testing.T) {
	for _, name := range []string{"a[b", "a[b]", `a*b`} {
		dir := filepath.Join(t.TempDir(), name)
		r := &Runner{cfg: Config{Dir: dir}}
		if err := os.MkdirAll(r.podDir("uid"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.podDir("uid"), ownerFile), []byte("node"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := r.CleanUp(func(node, uid string) bool { return node == "node" && uid == "uid" })
		if _, left := os.Stat(r.podDir("uid")); err != nil || left == nil {
			t.Errorf("%s: %v, the folder is left: %v", name, err, left == nil)
		}
	}
}

// TestOwnerIsReplaced checks that a Pod that goes on replaces the file with the name of its Node: CleanUp, which reads it at
// the same time, would take the Pod of an empty file for one without a Node.
func TestOwnerIsReplaced(t *testing.T) {
	w := newWorld(t, "exit 0")
	p := w.run(newPod("pod", corev1.RestartPolicyNever))
	<-p.Done()
	owner, before := filepath.Join(p.dir, ownerFile), filepath.Join(t.TempDir(), "before")
	if err := os.Link(owner, before); err != nil {
		t.Fatal(err)
	}
	<-w.run(p.Object()).Done()
	if err := os.WriteFile(before, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if node, err := os.ReadFile(owner); err != nil || string(node) != p.cfg.Node || p.cfg.Node == "" {
		t.Errorf("the Pod's Node: %q, %v", node, err)
	}
}
