package fsutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestRemoveAll checks that folders without write permission are removed too, such as those of Go's module cache, but
// nothing to which a link leads.
func TestRemoveAll(t *testing.T) {
	root, err := os.MkdirTemp("", "remove") // unlike that of t.TempDir, other users can reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	kept, dir := filepath.Join(root, "kept"), filepath.Join(root, "own", "dir")
	inside := filepath.Join(dir, "read-only", "inside")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(kept, 0o500))
	must(os.Chmod(root, 0o777))
	if os.Geteuid() == 0 { // root may remove everything
		runtime.LockOSThread() // the thread ends with the test
		must(syscall.Setfsuid(65534))
	}
	must(os.MkdirAll(inside, 0o700))
	must(os.Symlink(kept, filepath.Join(inside, "link")))
	must(os.Chmod(inside, 0o500))
	must(os.Chmod(filepath.Dir(inside), 0))
	if err := os.RemoveAll(dir); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("os.RemoveAll: %v", err)
	}
	must(RemoveAll(dir))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("the target of a link: %v, %v", info, err)
	}
}
