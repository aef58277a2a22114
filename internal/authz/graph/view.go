package graph

import "slices"

// Path returns a shortest path from the vertex to the Seed with this name, including both, or nil if there is none. It
// is slow, but does not block readers.
func (g *Graph) Path(from Vertex, seed string) []Vertex {
	g.writing.Lock()
	defer g.writing.Unlock()
	start, goal := g.vertices[from], g.vertices[Vertex{Kind: KindSeed, Name: seed}]
	if start == nil || goal == nil || !start.leadsTo(goal) {
		return nil
	}
	cameFrom := map[*node]*node{start: nil}
	for todo := []*node{start}; len(todo) > 0 && todo[0] != goal; todo = todo[1:] {
		for _, e := range todo[0].out {
			if _, seen := cameFrom[e.to]; !seen && e.to.leadsTo(goal) {
				cameFrom[e.to] = todo[0]
				todo = append(todo, e.to)
			}
		}
	}
	var path []Vertex
	for n := goal; n != nil; n = cameFrom[n] {
		path = append(path, n.Vertex)
	}
	slices.Reverse(path)
	return slices.Compact(path) // a relay has the same vertex as the node before it
}

// Next returns the vertices to which edges lead from this one, each once.
func (g *Graph) Next(from Vertex) []Vertex {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := g.vertices[from]
	if n == nil {
		return nil
	}
	next := make([]Vertex, 0, len(n.out))
	for _, e := range n.out {
		next = append(next, e.to.Vertex)
	}
	slices.SortFunc(next, Vertex.Compare)
	return slices.Compact(next)
}

// Snapshot is a sorted copy of the whole graph.
type Snapshot struct {
	Vertices []SnapshotVertex `json:"vertices"`
	// Edges has each edge once, even if several objects cause it.
	Edges []Edge `json:"edges"`
}

// SnapshotVertex is a vertex, and whether its object exists. Otherwise only edges refer to it, as to objects of kinds
// that are not watched, such as Secrets.
type SnapshotVertex struct {
	Vertex
	Exists bool `json:"exists"`
}

// Snapshot returns a copy of the graph. It does not block readers.
func (g *Graph) Snapshot() Snapshot {
	snapshot := g.copy()
	slices.SortFunc(snapshot.Vertices, func(a, b SnapshotVertex) int { return a.Compare(b.Vertex) })
	slices.SortFunc(snapshot.Edges, Edge.Compare)
	snapshot.Edges = slices.Compact(snapshot.Edges)
	return snapshot
}

func (g *Graph) copy() Snapshot {
	g.writing.Lock()
	defer g.writing.Unlock()
	snapshot := Snapshot{Vertices: make([]SnapshotVertex, 0, len(g.vertices)), Edges: make([]Edge, 0, g.edges)}
	for v, n := range g.vertices {
		snapshot.Vertices = append(snapshot.Vertices, SnapshotVertex{Vertex: v, Exists: n.exists})
		for _, e := range n.causes {
			snapshot.Edges = append(snapshot.Edges, e.edge())
		}
	}
	return snapshot
}
