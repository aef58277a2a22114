package etcdwatch

import (
	"testing"
	"time"

	"github.com/k3s-io/kine/pkg/server"
)

// TestDrain: what is left is read to its end, and what has no end is not waited for.
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		drain(make(chan []*server.Event))
	}()
	select {
	case <-ended:
	case <-time.After(10 * drainTimeout):
		t.Error("waits for ever")
	}
}
