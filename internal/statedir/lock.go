package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockTimeout is how long Lock waits for processes that only check the lock. Each check takes less than a
// millisecond.
const lockTimeout = 5 * time.Second

// Lock locks the landscape, or returns ErrLocked if another process holds it. It waits for processes that only check
// whether the landscape is held, as "status" does.
func Lock(dir string) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	l := lockOf(dir)
	for {
		if locked, err := l.TryLock(); err != nil {
			return nil, fmt.Errorf("locking the landscape: %w", err)
		} else if locked {
			return l, nil
		}
		if isHeld, err := IsHeld(dir); err != nil {
			return nil, err
		} else if isHeld {
			return nil, ErrLocked
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("locking the landscape: it is looked at all the time: %w", ctx.Err())
		case <-time.After(rand.N(2 * time.Millisecond)): // random, so that two processes do not check at the same moments
		}
	}
}

// IsHeld reports whether a process holds the landscape now. It takes a shared lock, so that another process that
// checks at the same time does not mistake it for the holder.
func IsHeld(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, LockFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && info.IsDir():
		return false, checkKinds(dir)
	}
	l := lockOf(dir)
	free, err := l.TryRLock()
	if err != nil {
		return false, fmt.Errorf("looking whether the landscape is locked: %w", err)
	}
	if !free {
		return true, nil
	}
	return false, l.Unlock()
}

func lockOf(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, LockFile), flock.SetPermissions(0o600))
}
