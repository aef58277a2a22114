package control

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestHolder connects to a process that has locked the landscape and has not written run.json yet.
func TestHolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Connect(dir); !errors.Is(err, statedir.ErrNotRunning) {
		t.Errorf("no process holds it: %v", err)
	}
	l, err := statedir.Lock(dir)
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
	if err := statedir.WriteRun(dir, &statedir.Run{PID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}

	if err := os.Remove(filepath.Join(dir, statedir.RunFile)); err != nil { // as "reset" does before it unlocks
		t.Fatal(err)
	}
	go connect()
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, statedir.ErrNotRunning) {
		t.Errorf("let go of: %v", err)
	}
}
