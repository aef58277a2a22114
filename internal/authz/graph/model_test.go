package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the graph as "Scoped API Access for gardenlets and Extensions" describes it: the edges that each object
// causes. It has no index.
type model map[Vertex][]Edge

func (m model) rebuilt() *Graph {
	g := New()
	for owner, edges := range m {
		g.Set(owner, edges)
	}
	return g
}

func (m model) snapshot() Snapshot {
	exists := map[Vertex]bool{}
	var s Snapshot
	for owner, edges := range m {
		exists[owner] = true
		for _, e := range edges {
			for _, v := range []Vertex{e.From, e.To} {
				if !exists[v] {
					exists[v] = false // referred to, but without an object
				}
			}
			s.Edges = append(s.Edges, e)
		}
	}
	for v, is := range exists {
		s.Vertices = append(s.Vertices, SnapshotVertex{Vertex: v, Exists: is})
	}
	slices.SortFunc(s.Vertices, func(a, b SnapshotVertex) int { return a.Compare(b.Vertex) })
	slices.SortFunc(s.Edges, Edge.Compare)
	s.Edges = slices.Compact(s.Edges)
	return s
}

// reaching returns all vertices with a path to the seed, by a plain search backward.
func reaching(s Snapshot, seed Vertex) map[Vertex]bool {
	into := map[Vertex][]Vertex{}
	for _, e := range s.Edges {
		into[e.To] = append(into[e.To], e.From)
	}
	found := map[Vertex]bool{}
	for _, v := range s.Vertices {
		if v.Vertex == seed {
			found[seed] = true
		}
	}
	for todo := []Vertex{seed}; len(todo) > 0 && found[seed]; {
		v := todo[0]
		todo = todo[1:]
		for _, from := range into[v] {
			if !found[from] {
				found[from] = true
				todo = append(todo, from)
			}
		}
	}
	return found
}

// universe has the vertices of a random test, and generates edges between them.
type universe struct {
	seeds, vertices []Vertex
	mostEdges       int
	edge            func(r *rand.Rand, owner Vertex) Edge
}

// anything returns a universe in which every edge is possible: cycles, loops, edges away from seeds.
func anything(seeds, others int) universe {
	u := universe{mostEdges: 5}
	for i := range seeds {
		u.seeds = append(u.seeds, Vertex{Kind: KindSeed, Name: fmt.Sprint("s", i)})
	}
	u.vertices = slices.Clone(u.seeds)
	all := Kinds()[1:]
	for i := range others {
		u.vertices = append(u.vertices, Vertex{Kind: all[i%len(all)], Namespace: fmt.Sprint("n", i%3), Name: fmt.Sprint("v", i)})
	}
	u.edge = func(r *rand.Rand, owner Vertex) Edge {
		e := Edge{From: u.vertices[r.IntN(len(u.vertices))], To: u.vertices[r.IntN(len(u.vertices))]}
		switch r.IntN(3) {
		case 0:
			e.From = owner
		case 1:
			e.To = owner
		}
		return e
	}
	return u
}

// landscape returns a universe with the specified edges only, with many seeds, a few vertices that reach all of them,
// and managed seeds on shoots, also in cycles.
func landscape(seeds, shoots int) universe {
	u := universe{mostEdges: 8}
	for i := range seeds {
		seed := Vertex{Kind: KindSeed, Name: fmt.Sprint("s", i)}
		u.seeds = append(u.seeds, seed)
		u.vertices = append(u.vertices, seed, Vertex{Kind: KindManagedSeed, Namespace: "garden", Name: seed.Name})
	}
	shoot := func(i int) Vertex { return Vertex{Kind: KindShoot, Namespace: "garden", Name: fmt.Sprint("v", i)} }
	for i := range shoots {
		u.vertices = append(u.vertices, shoot(i))
	}
	hot := Vertex{Kind: KindCloudProfile, Name: "hot"}
	namespace := Vertex{Kind: KindNamespace, Name: "garden"}
	project := Vertex{Kind: KindProject, Name: "garden"}
	u.vertices = append(u.vertices, project)
	u.edge = func(r *rand.Rand, owner Vertex) Edge {
		switch owner.Kind {
		case KindProject:
			return Edge{project, namespace}
		case KindSeed:
			return Edge{Vertex{Kind: KindSecret, Namespace: "garden", Name: fmt.Sprint("backup", r.IntN(3))}, owner}
		case KindManagedSeed:
			if r.IntN(2) == 0 {
				return Edge{Vertex{Kind: KindSeed, Name: owner.Name}, owner}
			}
			return Edge{owner, shoot(r.IntN(shoots))}
		}
		return []Edge{
			{hot, owner}, {namespace, owner},
			{Vertex{Kind: KindSecret, Namespace: "garden", Name: owner.Name + ".ssh-keypair"}, owner},
			{owner, u.seeds[r.IntN(seeds)]}, {owner, u.seeds[r.IntN(seeds)]},
		}[r.IntN(5)]
	}
	return u
}

type event struct {
	owner  Vertex
	delete bool
	edges  []Edge
}

func (u universe) event(r *rand.Rand, m model) event {
	e := event{owner: u.vertices[r.IntN(len(u.vertices))]}
	old, there := m[e.owner]
	switch kind := r.IntN(10); {
	case kind < 2:
		e.delete = true
	case kind < 4 && there: // the same edges, shuffled and duplicated
		e.edges = slices.Clone(old)
		r.Shuffle(len(e.edges), func(i, j int) { e.edges[i], e.edges[j] = e.edges[j], e.edges[i] })
		e.edges = append(e.edges, e.edges...)
	case kind < 6 && len(old) > 0: // one edge changed
		e.edges = slices.Clone(old)
		e.edges[r.IntN(len(old))] = u.edge(r, e.owner)
	default:
		for range r.IntN(u.mostEdges + 1) {
			e.edges = append(e.edges, u.edge(r, e.owner))
		}
	}
	return e
}

func (m model) apply(e event) {
	if e.delete {
		delete(m, e.owner)
	} else {
		m[e.owner] = e.edges
	}
}

func (e event) apply(g *Graph) {
	if e.delete {
		g.Delete(e.owner)
	} else {
		g.Set(e.owner, e.edges)
	}
}

// check compares HasPath for every vertex and every seed with a plain search.
func (u universe) check(t *testing.T, g *Graph, s Snapshot) {
	t.Helper()
	for _, seed := range u.seeds {
		reach := reaching(s, seed)
		for _, v := range s.Vertices {
			if got := g.HasPath(v.Vertex, seed.Name); got != reach[v.Vertex] {
				t.Fatalf("HasPath(%s, %s) = %v, a plain search says %v", v, seed.Name, got, reach[v.Vertex])
			}
		}
	}
}

// checkPaths checks that every path consists of existing edges.
func (u universe) checkPaths(t *testing.T, g *Graph, s Snapshot) {
	t.Helper()
	edges := map[Edge]bool{}
	for _, e := range s.Edges {
		edges[e] = true
	}
	for _, seed := range u.seeds {
		for _, v := range s.Vertices {
			path := g.Path(v.Vertex, seed.Name)
			if (path != nil) != g.HasPath(v.Vertex, seed.Name) {
				t.Fatalf("Path(%s, %s) = %v", v, seed.Name, path)
			}
			if path == nil {
				continue
			}
			if path[0] != v.Vertex || path[len(path)-1] != seed {
				t.Fatalf("Path(%s, %s) = %v goes elsewhere", v, seed.Name, path)
			}
			for i := range path[1:] {
				if !edges[Edge{path[i], path[i+1]}] {
					t.Fatalf("Path(%s, %s) = %v: there is no edge from %s to %s", v, seed.Name, path, path[i], path[i+1])
				}
			}
		}
	}
}
