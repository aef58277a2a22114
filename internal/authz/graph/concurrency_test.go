package graph

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReadersDuringUpdates checks that readers see each update as a whole: a path that always exists is always found,
// and one that never exists never is, also if an edge of it is replaced.
func TestReadersDuringUpdates(t *testing.T) {
	g := New()
	hot, binding := Vertex{Kind: KindCloudProfile, Name: "hot"}, Vertex{Kind: KindSecretBinding, Namespace: "garden-dev", Name: "b"}
	left, right := secret("left"), secret("right")
	stays := shoot("stays")
	set(g, stays, Edge{hot, stays}, Edge{stays, seed("always")})
	set(g, seed("never"))
	set(g, managedSeed("m"), Edge{seed("m"), managedSeed("m")}, Edge{managedSeed("m"), shoot("m")})
	set(g, shoot("m"), Edge{shoot("m"), seed("soil")})
	set(g, binding, Edge{binding, seed("soil")})

	var done atomic.Bool
	var wait sync.WaitGroup
	read := func(from Vertex, to string, want bool) {
		wait.Go(func() {
			for !done.Load() {
				if g.HasPath(from, to) != want {
					t.Errorf("HasPath(%s, %s) was %v", from, to, !want)
					return
				}
			}
		})
	}
	read(hot, "always", true)
	read(hot, "never", false)
	read(binding, "soil", true) // over the managed seed, directly, or both, in turn
	read(left, "y", false)      // left leads to x, right to y, and they change together
	read(right, "x", false)
	read(shoot("m"), "m", false)
	wait.Go(func() {
		for !done.Load() {
			g.Has(shoot("s1"))
			g.Path(hot, "always")
			g.Snapshot()
		}
	})

	r := rand.New(rand.NewPCG(3, 3))
	for i := range 2000 {
		set(g, shoot("flips"), []Edge{{left, shoot("flips")}, {shoot("flips"), seed("x")}}...)
		set(g, shoot("flips"), []Edge{{right, shoot("flips")}, {shoot("flips"), seed("y")}}...)
		switch i % 3 {
		case 0:
			set(g, binding, Edge{binding, seed("m")})
		case 1:
			set(g, binding, Edge{binding, seed("soil")}, Edge{binding, seed("m")})
		case 2:
			set(g, binding, Edge{binding, seed("soil")})
		}
		// Seeds that are added and removed change the number of destinations that the hot vertex reaches.
		s := shoot(fmt.Sprint("s", r.IntN(60)))
		if i/500%2 == 0 {
			set(g, s, Edge{hot, s}, Edge{s, seed(fmt.Sprint("seed", r.IntN(80)))})
		} else {
			g.Delete(s)
		}
	}
	done.Store(true)
	wait.Wait()
}

// TestConcurrentWriters checks that several writers may change the graph concurrently.
func TestConcurrentWriters(t *testing.T) {
	u, g := landscape(5, 20), New()
	models := make([]model, 4)
	var wait sync.WaitGroup
	for w := range models {
		models[w] = model{}
		wait.Go(func() {
			r := rand.New(rand.NewPCG(4, uint64(w)))
			for range 1500 {
				e := u.event(r, models[w])
				e.owner.Name = fmt.Sprint(e.owner.Name, "-", w) // each writer has its own objects, with edges to the same other objects
				models[w].apply(e)
				e.apply(g)
				g.HasPath(e.owner, "s0")
			}
		})
	}
	wait.Wait()
	all := model{}
	for _, m := range models {
		for owner, edges := range m {
			all[owner] = edges
		}
	}
	sameSnapshot(t, g.Snapshot(), all.snapshot())
	u.check(t, g, all.snapshot())
}

// TestReadersNeverMixTwoStates changes the edges of a vertex and of a seed in one update. A reader that saw one of them
// before and the other after the update would find a path that never existed.
func TestReadersNeverMixTwoStates(t *testing.T) {
	g := New()
	left := secret("left")
	m := managedSeed("m")
	before := []Edge{{left, seed("p")}, {seed("q"), m}, {m, seed("x")}}
	after := []Edge{{left, seed("q")}, {seed("p"), m}, {m, seed("x")}}
	never(t, g, left, "x", 30_000, func() {
		g.Set(m, before)
		g.Set(m, after)
	})
}

// TestReadersNeverMixTwoSeeds reuses the number of a deleted seed for another one. A reader must not confuse the two.
func TestReadersNeverMixTwoSeeds(t *testing.T) {
	g := New()
	left := secret("left")
	set(g, left)
	never(t, g, left, "gone", 30_000, func() {
		set(g, seed("gone"))
		g.Delete(seed("gone"))
		set(g, left, Edge{left, seed("another")})
		set(g, left)
	})
}

// never checks a path that never exists while a writer writes.
func never(t *testing.T, g *Graph, from Vertex, to string, rounds int, write func()) {
	t.Helper()
	var done atomic.Bool
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for !done.Load() {
				if g.HasPath(from, to) {
					t.Errorf("HasPath(%s, %s) was true", from, to)
					return
				}
			}
		})
	}
	for range rounds {
		write()
	}
	done.Store(true)
	wait.Wait()
}
