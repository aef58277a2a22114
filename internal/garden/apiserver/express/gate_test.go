package express

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardenlite/gardenlite/internal/garden/registry/sharedreads"
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
				g.width = 2
				var all sync.WaitGroup
				for i := range len(test.at) {
					r := httptest.NewRequest(test.method, test.path, nil)
					r.ContentLength = int64(i)
					all.Go(func() { g.ServeHTTP(httptest.NewRecorder(), r) })
					synctest.Wait()
				}
				all.Wait()
				synctest.Wait() // until the places are free
				g.mu.Lock()
				defer g.mu.Unlock()
				if !slices.Equal(at, test.at) || !slices.IsSorted(who[:2]) || g.counted != 0 {
					t.Errorf("in at %v, %v expected; the order was %v, %d are in", at, test.at, who, g.counted)
				}
			})
		})
	}
}

// TestGateOpens: who has waited for a second goes in.
func TestGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, came := time.Now(), time.Time{}
		g := newGate(notShort, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came, _ = sharedreads.Arrival(r.Context()) }))
		g.width = 0 // nobody is let in
		time.Sleep(time.Millisecond)
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/x/adminkubeconfig", nil))
		if waited := time.Since(begin) - time.Millisecond; waited != gateWait || !came.Equal(begin.Add(time.Millisecond)) {
			t.Errorf("it waited for %s, and came at %s", waited, came.Sub(begin))
		}
	})
}

// TestGateAnswers: answers are found a few at a time, in order, and sent from where the requests are; who goes meanwhile or
// whose answer fails takes the other way, and keeps nobody out.
func TestGateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ways := map[int64]string{}
		note := func(r *http.Request, way string) {
			mu.Lock()
			defer mu.Unlock()
			ways[r.ContentLength] += way
		}
		begin := time.Now()
		took := map[int64]time.Duration{}
		g := newGate(func(r *http.Request) func(http.ResponseWriter) {
			time.Sleep(10 * time.Millisecond)
			switch {
			case r.URL.RawQuery == "panic":
				panic("on purpose")
			case r.URL.RawQuery == "long":
				time.Sleep(10 * gateHold)
			}
			return func(w http.ResponseWriter) {
				note(r, "short")
				w.WriteHeader(http.StatusCreated)
			}
		}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(r, "other") }))
		g.width = 1
		var all sync.WaitGroup
		for i, query := range []string{"", "panic", "", "gone", "long", "", ""} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/x/adminkubeconfig?"+query, nil)
			r.ContentLength = int64(i)
			all.Go(func() {
				g.ServeHTTP(httptest.NewRecorder(), r)
				mu.Lock()
				defer mu.Unlock()
				took[r.ContentLength] = time.Since(begin)
			})
			synctest.Wait()
			if query == "gone" {
				cancel()
			}
		}
		all.Wait()
		const one = 10 * time.Millisecond
		for i, want := range []struct {
			way  string
			took time.Duration
		}{{"short", one}, {"other", 2 * one}, {"short", 3 * one}, {"other", 0}, {"short", 4*one + 10*gateHold}, {"short", 4*one + gateHold}, {"short", 5*one + gateHold}} {
			if way, took := ways[int64(i)], took[int64(i)]; way != want.way || took != want.took {
				t.Errorf("request %d: took the way %q and %s, expected %q and %s", i, way, took, want.way, want.took)
			}
		}
		synctest.Wait() // until the places are free
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.counted != 0 || len(g.waiting) != 0 {
			t.Errorf("%d are counted, %d wait", g.counted, len(g.waiting))
		}
	})
}
