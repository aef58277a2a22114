package landscape

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestLock takes the landscape again and again while others look whether it is held: they neither keep it from who wants it,
// nor take each other for who has it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("taken twice: %v", err)
	}
	if isHeld, err := held(dir); err != nil || !isHeld {
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
					isHeld, err := held(dir)
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
		l, err := lock(dir)
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
		if isHeld, err := held(dir); err != nil || isHeld {
			t.Errorf("held: %t, %v", isHeld, err)
			break
		}
	}
	stop()
}

// TestHolder connects to a process that has taken the landscape and has not said how one talks to it.
func TestHolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Connect(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no process holds it: %v", err)
	}
	l, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan error)
	connect := func() {
		c, err := Connect(dir)
		if err == nil && c.run.PID != 7 {
			t.Errorf("process %d", c.run.PID)
		}
		answer <- err
	}
	go connect()
	if err := writeRun(dir, &Run{PID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}

	if err := os.Remove(filepath.Join(dir, runFile)); err != nil { // as "reset" does, which lets go of it then
		t.Fatal(err)
	}
	go connect()
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, ErrNotRunning) {
		t.Errorf("let go of: %v", err)
	}
}
