package graphsync

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// flaky is a source whose lists and watches can be made to fail.
type flaky struct {
	cache.ListerWatcher

	mu                       sync.Mutex
	failsLists, failsWatches bool
	watches                  []watch.Interface
	tried                    int
}

func (f *flaky) IsWatchListSemanticsUnSupported() bool { return true }

func (f *flaky) List(options metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried++
	if f.failsLists {
		return nil, errors.New("no lists in this test")
	}
	return f.ListerWatcher.List(options)
}

func (f *flaky) Watch(options metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried++
	if f.failsWatches {
		return nil, errors.New("no watches in this test")
	}
	w, err := f.ListerWatcher.Watch(options)
	f.watches = append(f.watches, w)
	return w, err
}

// set makes lists and watches fail from now on, or succeed, and ends all watches.
func (f *flaky) set(failsLists, failsWatches bool) {
	f.mu.Lock()
	f.failsLists, f.failsWatches = failsLists, failsWatches
	watches := f.watches
	f.watches, f.tried = nil, 0
	f.mu.Unlock()
	for _, w := range watches {
		w.Stop()
	}
}

func (f *flaky) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tried
}

func (f *flaky) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watches) > 0
}

// flakyGarden returns a garden of flaky sources, all of them watched, and the source of shoots.
func flakyGarden(t *testing.T) (*garden, *flaky) {
	t.Helper()
	g := newGarden(t)
	sources := map[string]*flaky{}
	var err error
	g.syncer, err = New(Config{Graph: g.graph, Clock: g.clock, ListerWatcher: func(r Resource) cache.ListerWatcher {
		sources[r.Resource] = &flaky{ListerWatcher: g.sources[r.Resource]}
		return sources[r.Resource]
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.synced()
	for resource, source := range sources {
		g.watched(resource, source)
	}
	return g, sources["shoots"]
}

// watched waits until the syncer has a watch of the source.
func (g *garden) watched(resource string, source *flaky) {
	g.Helper()
	for _, st := range g.syncer.stores {
		if st.resource.Resource == resource {
			testutil.EventuallyTrue(g, resource+" are watched", func() bool { return source.watched() && st.lost.Load() == nil })
		}
	}
}

// TestStale checks that the graph does not remain current without a watch; HasSynced, which is for the start, stays
// true.
func TestStale(t *testing.T) {
	for what, fails := range map[string][2]bool{"neither": {true, true}, "lists only": {false, true}} {
		t.Run(what, func(t *testing.T) {
			g, shoots := flakyGarden(t)
			if !g.syncer.Current() {
				t.Fatalf("not current at first: %s", g.syncer.Missing())
			}
			shoots.set(fails[0], fails[1])
			testutil.EventuallyTrue(g, "watches are asked for", func() bool { return shoots.attempts() > 2 })
			g.clock.Step(staleAfter)
			if !g.syncer.Current() {
				t.Error("not current just at the limit")
			}
			if fails[0] {
				g.clock.Step(time.Second)
				if g.syncer.Current() || !g.syncer.HasSynced() {
					t.Errorf("current: %t, has synced: %t", g.syncer.Current(), g.syncer.HasSynced())
				}
				if missing := g.syncer.Missing(); !strings.Contains(missing, "shoots.core.gardener.cloud (no watch for 31s)") ||
					strings.Contains(missing, ",") {
					t.Errorf("missing: %q", missing)
				}
			}
			shoots.set(false, false)
			testutil.EventuallyTrue(g, "the graph is current again", g.syncer.Current)
			if missing := g.syncer.Missing(); missing != "" {
				t.Errorf("missing: %q", missing)
			}
			g.sources["shoots"].Add(shootObject("s", "x"))
			g.path(graph.Vertex{Kind: graph.KindShoot, Namespace: "garden", Name: "s"}, "x", true)
		})
	}
}

// TestWatchesThatEndAreNotStale checks that the graph remains current if a watch ends and is followed by another one.
func TestWatchesThatEndAreNotStale(t *testing.T) {
	g, shoots := flakyGarden(t)
	for range 5 {
		g.clock.Step(time.Hour)
		if !g.syncer.Current() {
			t.Fatalf("not current while it is watched: %s", g.syncer.Missing())
		}
		shoots.set(false, false)
		g.watched("shoots", shoots)
	}
}

// TestStreamedListsAreNoWatches checks that a streamed list counts as a watch only once it is complete.
func TestStreamedListsAreNoWatches(t *testing.T) {
	g := newGarden(t)
	st := g.syncer.stores[0]
	f := cache.ToListerWatcherWithContext(st.followed(g.sources["seeds"]))
	yes := true
	w, err := f.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	g.clock.Step(staleAfter + time.Second)
	if st.stale() == 0 {
		t.Error("a list that has told nothing yet counts as a watch")
	}
	if err := st.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	if st.stale() != 0 {
		t.Error("a list that was taken in does not count")
	}
}

func TestSeeds(t *testing.T) {
	g := newGarden(t).synced()
	g.sources["seeds"].Add(seedObject("a", nil))
	g.sources["seeds"].Add(seedObject("b", nil))
	testutil.EventuallyTrue(g, "both seeds are known", func() bool { return len(g.syncer.Seeds()) == 2 })
	g.sources["seeds"].Delete(seedObject("a", nil))
	testutil.EventuallyTrue(g, "one seed is known", func() bool { seeds := g.syncer.Seeds(); return len(seeds) == 1 && seeds[0] == "b" })
}
