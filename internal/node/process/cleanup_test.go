package process

import (
	"os"
	"path/filepath"
	"testing"
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
