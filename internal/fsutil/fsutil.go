// Package fsutil writes files so that a reader, or a start after a kill, sees the old content or the new, never half.
// It imports nothing of the project.
package fsutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Unfinished matches the names of the files that WriteFile renames when they are complete.
const Unfinished = ".*.unfinished-*"

// WriteFile replaces a file's content atomically. The file has the given mode, whatever the umask.
func WriteFile(name string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), strings.Replace(Unfinished, "*", filepath.Base(name), 1))
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// RemoveAll removes a file, or a folder with everything in it, also what is in folders that this user may not write to.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// Size returns how many bytes a folder takes on its disk. What is deleted meanwhile, or cannot be read, counts
// nothing.
func Size(dir string) (bytes uint64) {
	_ = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, _ error) error {
		var stat unix.Stat_t
		if unix.Lstat(name, &stat) == nil {
			bytes += uint64(stat.Blocks) * 512 // the unit of Blocks on every system
		}
		return nil
	})
	return bytes
}

// Free returns how many bytes this user can still write to the file system of a folder.
func Free(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("asking how much room there is in %s: %w", dir, err)
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}
