package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLock locks the landscape again and again while other goroutines check whether it is held: these checks neither
// make Lock fail, nor take one another for a holder.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("taken twice: %v", err)
	}
	if isHeld, err := IsHeld(dir); err != nil || !isHeld {
		t.Errorf("held: %t, %v", isHeld, err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}

	looking := func(look func(isHeld bool)) (stop func()) {
		var wg sync.WaitGroup
		end := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
					}
					isHeld, err := IsHeld(dir)
					if err != nil {
						t.Error(err)
						return
					}
					look(isHeld)
				}
			})
		}
		return func() { close(end); wg.Wait() }
	}
	stop := looking(func(bool) {})
	for range 300 {
		l, err := Lock(dir)
		if err != nil {
			t.Error(err)
			break
		}
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	stop()

	stop = looking(func(isHeld bool) {
		if isHeld {
			t.Error("seen as held, and only others looked")
		}
	})
	for range 1000 {
		if isHeld, err := IsHeld(dir); err != nil || isHeld {
			t.Errorf("held: %t, %v", isHeld, err)
			break
		}
	}
	stop()
}

// TestWrongKinds checks that files and directories of the wrong kind are named, all at once, with what to do.
func TestWrongKinds(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, LockFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, DataFolder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Prepare(dir)
	_, heldErr := IsHeld(dir)
	for _, says := range []string{filepath.Join(dir, LockFile) + " is no file: move it away",
		filepath.Join(dir, DataFolder) + " is no directory"} {
		if err == nil || !strings.Contains(err.Error(), says) || heldErr == nil || !strings.Contains(heldErr.Error(), says) {
			t.Errorf("%q is not in: %v; %v", says, err, heldErr)
		}
	}
}
