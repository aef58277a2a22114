package control

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestAwaitFormer checks how long a start waits for a process that holds the landscape and does not answer.
func TestAwaitFormer(t *testing.T) {
	for name, tc := range map[string]struct {
		held time.Duration
		free bool
		says string
	}{
		"one that was killed":   {held: 8 * time.Second, free: true},
		"one that does not end": {held: 2 * FormerTimeout, says: "has not ended within 1m0s: end it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				if free, err := AwaitFormer(t.Context(), dir, func() { t.Error("it waits for nothing") }); !free || err != nil {
					t.Errorf("nobody has it: free %t, %v", free, err)
				}
				lock, err := statedir.Lock(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Unlock()
				time.AfterFunc(tc.held, func() { _ = lock.Unlock() })
				waited := 0
				free, err := AwaitFormer(t.Context(), dir, func() { waited++ })
				if free != tc.free || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) || waited != 1 {
					t.Errorf("free %t, %v; it says %d times that it waits", free, err, waited)
				}
			})
		})
	}
}

// TestAwaitFormerThatAnswers checks that a start waits for a process that is stopping, and for no other that answers.
func TestAwaitFormerThatAnswers(t *testing.T) {
	dir, err := os.MkdirTemp("", "c") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lock, err := statedir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	socket, err := fsutil.ListenSocket(dir, statedir.ControlSocket)
	if err != nil {
		t.Fatal(err)
	}
	if err := statedir.WriteRun(dir, &statedir.Run{Control: socket.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	state := StateReady
	closeServer := Serve(socket, func(bool) Status { return Status{State: state} }, func() {}, nil)
	t.Cleanup(func() { _ = closeServer() })
	for _, state = range []string{StateStarting, StateReady, StateFailed} {
		if free, err := AwaitFormer(t.Context(), dir, func() { t.Error("it waits") }); free || err != nil {
			t.Errorf("%s: free %t, %v", state, free, err)
		}
	}
	state = StateStopping
	waited := false
	free, err := AwaitFormer(t.Context(), dir, func() {
		waited = true
		_ = lock.Unlock()
	})
	if !free || err != nil || !waited {
		t.Errorf("stopping: free %t, %v, waited %t", free, err, waited)
	}
}
