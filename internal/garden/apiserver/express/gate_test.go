package express

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core/kubeconfig"
)

func notShort(*http.Request) func(http.ResponseWriter) { return nil }

// TestGate: few are in at a time, in order; one that takes long does not keep others out, and nobody waits for ever.
func TestGate(t *testing.T) {
	for name, test := range map[string]struct {
		method, path string
		takes        time.Duration
		// at is when the requests are in.
		at []time.Duration
	}{
		"short":          {"POST", "/shoots/x/adminkubeconfig", 10 * time.Millisecond, []time.Duration{0, 0, 10 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}},
		"viewers":        {"POST", "/shoots/x/viewerkubeconfig", 10 * time.Millisecond, []time.Duration{0, 0, 10 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}},
		"long":           {"POST", "/shoots/x/adminkubeconfig", time.Minute, []time.Duration{0, 0, gateHold, gateHold, 2 * gateHold}},
		"something else": {"POST", "/shoots", time.Minute, make([]time.Duration, 5)},
		"another verb":   {"GET", "/shoots/x/adminkubeconfig", time.Minute, make([]time.Duration, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var at []time.Duration
				var who []int
				begin := time.Now()
				g := newGate(notShort, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					mu.Lock()
					at, who = append(at, time.Since(begin)), append(who, int(r.ContentLength))
					mu.Unlock()
					time.Sleep(test.takes)
				}))
				g.slots = make(chan struct{}, 2)
				var all sync.WaitGroup
				for i := range len(test.at) {
					r := httptest.NewRequest(test.method, test.path, nil)
					r.ContentLength = int64(i)
					all.Go(func() { g.ServeHTTP(httptest.NewRecorder(), r) })
					synctest.Wait()
				}
				all.Wait()
				if !slices.Equal(at, test.at) || !slices.IsSorted(who[:2]) || len(g.slots) != 0 {
					t.Errorf("in at %v, %v expected; the order was %v, %d are in", at, test.at, who, len(g.slots))
				}
			})
		})
	}
}

// TestGateOpens: who has waited for a second goes in.
func TestGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, came := time.Now(), time.Time{}
		g := newGate(notShort, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came, _ = kubeconfig.Arrival(r.Context()) }))
		g.slots = make(chan struct{}) // nobody is let in
		time.Sleep(time.Millisecond)
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/x/adminkubeconfig", nil))
		if waited := time.Since(begin) - time.Millisecond; waited != gateWait || !came.Equal(begin.Add(time.Millisecond)) {
			t.Errorf("it waited for %s, and came at %s", waited, came.Sub(begin))
		}
	})
}
