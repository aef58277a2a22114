package etcdwatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/k3s-io/kine/pkg/server"
)

// TestDrain checks that drain reads a channel until it is closed, and gives up after drainTimeout if it is not.
func TestDrain(t *testing.T) {
	events := make(chan []*server.Event)
	read := 0
	go func() {
		defer close(events)
		for range 3 {
			events <- nil
			read++
		}
	}()
	drain(events)
	if read != 3 {
		t.Errorf("%d of 3 were read", read)
	}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		silent := make(chan []*server.Event)
		defer close(silent) // ends the goroutine that still reads from it
		drain(silent)
		if waited := time.Since(begin); waited != drainTimeout {
			t.Errorf("it waits for %s, not %s", waited, drainTimeout)
		}
	})
}
