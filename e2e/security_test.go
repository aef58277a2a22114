package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// TestFilesArePrivate checks the modes of all files and folders in the landscape's directory.
func TestFilesArePrivate(t *testing.T) {
	count := 0
	must(t, filepath.WalkDir(suite.DataDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		count++
		return nil
	}))
	if count < 10 {
		t.Errorf("only %d files and folders", count)
	}
}

// ignoreMissing returns nil for an error about a file that is not there: the files of a landscape come and go.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// TestListensOnLoopbackOnly reads the sockets of the landscape's process.
func TestListensOnLoopbackOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	pid := os.Getppid()
	if name, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(name) != "gardenlite" { // the suite runs below "go test"
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		must(t, err)
		_, rest, _ := strings.Cut(string(data), "PPid:")
		_, err = fmt.Sscan(rest, &pid)
		must(t, err)
	}
	inodes := map[string]bool{}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	for _, entry := range entries {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, entry.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	listening := 0
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) < 10 || fields[3] != listen || !inodes[fields[9]] {
				continue
			}
			listening++
			if !strings.HasPrefix(fields[1], "0100007F:") && !strings.HasPrefix(fields[1], "00000000000000000000000001000000:") {
				t.Errorf("process %d listens on %s, which is not loopback", pid, fields[1])
			}
		}
	}
	if listening == 0 {
		t.Errorf("found no listening socket of process %d", pid)
	}
}
