package fsutil

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free is how many bytes this user may still write to the file system that a folder is in.
func Free(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("asking how much room there is in %s: %w", dir, err)
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}
