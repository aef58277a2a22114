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
