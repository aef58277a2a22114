package graph

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// Readers see each update whole, whatever a writer does meanwhile: what is always so is always answered, and what is
// never so never, also when only the next edge of the way changes.
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
	read(binding, "soil", true) // now over the managed seed, now directly, now both
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
		// Seeds that come and go, over which the hot vertex grows from a word to a list to bits and back.
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

// Many may write at once.
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
				e.owner.Name = fmt.Sprint(e.owner.Name, "-", w) // each its own objects, with edges to the same others
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

// What a vertex reaches and what reaches the seed change in one update: no reader may see the one before and the other
// after, which together would be a path that never was.
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

// The number of a seed that is gone is used for another one: no reader may take the one for the other.
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

// never reads a path that is never there while a writer writes.
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
