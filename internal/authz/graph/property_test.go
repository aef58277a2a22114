package graph

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

var universes = map[string]func() universe{
	"any edge, few vertices":  func() universe { return anything(3, 6) },
	"any edge, more vertices": func() universe { return anything(6, 40) },
	"any edge, many seeds":    func() universe { return anything(90, 10) },
	"the specified edges":     func() universe { return landscape(6, 30) },
	"many seeds, hot vertex":  func() universe { return landscape(100, 150) },
}

// TestGraphIsAFunctionOfTheObjects checks that after any sequence of additions, updates, deletions and repeated events
// the graph is equal to one that is built from the existing objects, and that every answer is that of a plain search.
func TestGraphIsAFunctionOfTheObjects(t *testing.T) {
	const events = 1500
	for name, make := range universes {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				u, r, g, m := make(), rand.New(rand.NewPCG(seed, 1)), New(), model{}
				for i := range events {
					e := u.event(r, m)
					m.apply(e)
					e.apply(g)
					if i%7 == 0 {
						e.apply(g) // a repeated event
					}
					if i%60 == 0 || len(u.vertices) < 10 {
						u.check(t, g, m.snapshot())
					}
					if i%300 == 299 {
						s := m.snapshot()
						sameSnapshot(t, g.Snapshot(), s)
						sameSnapshot(t, m.rebuilt().Snapshot(), s)
						u.check(t, m.rebuilt(), s)
						u.checkPaths(t, g, s)
						onlyNeededDestinations(t, g)
					}
				}
				empty(t, g, m)
			})
		}
	}
}

// TestGraphDoesNotDependOnOrder checks that the graph does not depend on the order of the events of different objects,
// nor on repeated old events of an object before its last one.
func TestGraphDoesNotDependOnOrder(t *testing.T) {
	const events = 1500
	for name, make := range universes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, r, m := make(), rand.New(rand.NewPCG(5, 1)), model{}
			byOwner := map[Vertex][]event{}
			for range events {
				e := u.event(r, m)
				m.apply(e)
				byOwner[e.owner] = append(byOwner[e.owner], e)
			}
			want := m.snapshot()
			for range 3 {
				g := New()
				for _, e := range mixed(r, byOwner) {
					e.apply(g)
				}
				sameSnapshot(t, g.Snapshot(), want)
				u.check(t, g, want)
			}
		})
	}
}

// mixed returns the events in random order, some of them repeatedly. The last event of each owner remains the last.
func mixed(r *rand.Rand, byOwner map[Vertex][]event) (mixed []event) {
	queues := [][]event{}
	for _, v := range sortedOwners(byOwner) {
		q := append([]event(nil), byOwner[v]...)
		last := len(q) - 1
		r.Shuffle(last, func(i, j int) { q[i], q[j] = q[j], q[i] })
		q = append(q[:last:last], append(append([]event(nil), q[:r.IntN(last+1)]...), q[last], q[last])...)
		queues = append(queues, q)
	}
	for len(queues) > 0 {
		i := r.IntN(len(queues))
		mixed = append(mixed, queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues[i] = queues[len(queues)-1]
			queues = queues[:len(queues)-1]
		}
	}
	return mixed
}

func sortedOwners(byOwner map[Vertex][]event) []Vertex {
	m := model{}
	for v := range byOwner {
		m[v] = nil
	}
	var sorted []Vertex
	for _, v := range m.snapshot().Vertices {
		sorted = append(sorted, v.Vertex)
	}
	return sorted
}

func sameSnapshot(t *testing.T, got, want Snapshot) {
	t.Helper()
	if len(got.Edges) == 0 && len(want.Edges) == 0 {
		got.Edges, want.Edges = nil, nil
	}
	if len(got.Vertices) == 0 && len(want.Vertices) == 0 {
		got.Vertices, want.Vertices = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the graph is\n%v\nand should be\n%v", got, want)
	}
}

// empty deletes all objects, and checks that nothing is left.
func empty(t *testing.T, g *Graph, m model) {
	t.Helper()
	for owner := range m {
		g.Delete(owner)
	}
	if vertices, edges := g.Len(); vertices != 0 || edges != 0 {
		t.Errorf("%d vertices and %d edges stay when all objects are gone", vertices, edges)
	}
	for _, n := range g.index.destinations {
		if n != nil {
			t.Errorf("%s stays a destination", n)
		}
	}
}

// onlyNeededDestinations checks that there is one destination for each Seed and for each edge that needs a relay, and
// no other.
func onlyNeededDestinations(t *testing.T, g *Graph) {
	t.Helper()
	got, want := 0, 0
	for _, n := range g.index.destinations {
		if n != nil {
			got++
		}
	}
	for v, n := range g.vertices {
		if v.Kind == KindSeed {
			want++
		}
		if !n.exists {
			continue
		}
		for _, e := range n.causes {
			if tail := e.edge().From; tail.Kind != KindSeed && tail.Kind.rank() >= e.to.Kind.rank() {
				want++
			}
		}
	}
	if got != want {
		t.Errorf("%d destinations, want %d", got, want)
	}
}
