package quirks

import (
	"runtime"
	"testing"
	"time"
)

// TestLogOrigin: goroutines have the origin of the goroutine that starts them, also after that has left it.
func TestLogOrigin(t *testing.T) {
	garden, seed := LogOrigin{"kube-apiserver", "garden"}, LogOrigin{"gardenlet", "seed-local"}
	in := func() LogOrigin {
		found := make(chan LogOrigin)
		go func() { found <- LogOriginOfGoroutine() }()
		return <-found
	}
	leaveGarden := EnterLogOrigin(garden)
	later, found := make(chan struct{}), make(chan LogOrigin)
	go func() {
		<-later
		found <- in()
	}()
	if got := in(); got != garden {
		t.Errorf("in the garden it is %v", got)
	}
	leaveSeed := EnterLogOrigin(seed)
	if got := in(); got != seed {
		t.Errorf("in the seed it is %v", got)
	}
	leaveSeed()
	if got := in(); got != garden {
		t.Errorf("after the seed it is %v", got)
	}
	leaveGarden()
	if got := in(); got != (LogOrigin{}) {
		t.Errorf("outside it is %v", got)
	}
	close(later)
	if got := <-found; got != garden {
		t.Errorf("a goroutine of the garden has %v", got)
	}
}

// TestLogOriginsEnd: an origin without goroutines is forgotten.
func TestLogOriginsEnd(t *testing.T) {
	for range 100 {
		EnterLogOrigin(LogOrigin{Component: "test", Cluster: "ends"})()
	}
	count := func() (n int) {
		origins.Range(func(_, origin any) bool {
			if origin.(*LogOrigin).Cluster == "ends" {
				n++
			}
			return true
		})
		return n
	}
	for deadline := time.Now().Add(10 * time.Second); count() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d are left", count())
		}
	}
}
