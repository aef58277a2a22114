package statedir

import (
	"fmt"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// minFree is how many bytes a landscape with a sqlite datastore needs to start: for the datastore, its write-ahead
// log, and its log.
const minFree = 32 << 20

// CheckDisk returns an error if the disk is full: the start would get stuck half-way.
func CheckDisk(dir string) error {
	free, err := fsutil.Free(dir)
	if err != nil {
		return err
	}
	if free < minFree {
		return fmt.Errorf("the disk is full: %s has %d KiB left, and a landscape needs %d MiB: make room, or choose "+
			"another place with --data-dir", dir, free>>10, minFree>>20)
	}
	return nil
}

// DiskMessage returns the free bytes, and a warning for the status if the disk is almost full.
func DiskMessage(dir string) (free uint64, message string) {
	free, err := fsutil.Free(dir)
	if err != nil {
		return 0, err.Error()
	}
	if free < minFree {
		return free, fmt.Sprintf("the disk is almost full (%d KiB left): writes fail when it is; make room", free>>10)
	}
	return free, ""
}
