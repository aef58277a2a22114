package fsutil

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenSocket(t *testing.T) {
	for what, dir := range map[string]string{"short": "", "too long": strings.Repeat("x", maxSocketPath)} {
		t.Run(what, func(t *testing.T) {
			root, err := os.MkdirTemp("", "s") // t.TempDir's can be too long
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			dir := filepath.Join(root, dir)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			listener, err := ListenSocket(dir, "s")
			if err != nil {
				t.Fatal(err)
			}
			path := listener.Addr().String()
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			for range 2 {
				if err := listener.Close(); err != nil {
					t.Error(err)
				}
			}
			left := path
			if !strings.HasPrefix(path, root) {
				left = filepath.Dir(path)
			}
			if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", left, err)
			}
		})
	}
}

// TestListenSocketLeavesAnother: a landscape that is still stopping does not remove the socket of a new one in the
// same folder.
func TestListenSocketLeavesAnother(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	before, err := ListenSocket(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	after, err := ListenSocket(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := before.Close(); err != nil {
		t.Error(err)
	}
	conn, err := net.Dial("unix", after.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestSocketsOfKilledProcess checks that a process with a long path leaves one folder however often it is killed, which
// RemoveSockets removes, and that a folder that others may use is not taken.
func TestSocketsOfKilledProcess(t *testing.T) {
	temporary, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	t.Setenv("TMPDIR", temporary)
	root := filepath.Join(temporary, strings.Repeat("x", maxSocketPath))
	dir := filepath.Join(root, "in it")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		all, _ := filepath.Glob(filepath.Join(temporary, "gardenlite-*"))
		return all
	}
	for range 3 {
		if _, err := ListenSocket(dir, "s"); err != nil { // it is not closed
			t.Fatal(err)
		}
	}
	if all := left(); len(all) != 1 {
		t.Errorf("it leaves %v", all)
	}
	if err := RemoveSockets(root); err != nil || len(left()) > 0 {
		t.Errorf("afterwards %v is left: %v", left(), err)
	}
	if err := os.Mkdir(socketFolder(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := ListenSocket(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if folder := filepath.Dir(listener.Addr().String()); folder == socketFolder(dir) {
		t.Errorf("it takes %s, which others may enter", folder)
	}
}
