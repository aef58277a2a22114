package graph

import "slices"

// Snapshot is the whole graph at one moment, sorted, for the debug page, JSON, DOT, and comparison.
type Snapshot struct {
	Vertices []SnapshotVertex `json:"vertices"`
	// Edges holds an edge once, however many objects cause it.
	Edges []Edge `json:"edges"`
}

// SnapshotVertex is a vertex, and whether its object exists or edges only refer to it. Kinds that are not watched, such
// as Secrets, never exist in this sense.
type SnapshotVertex struct {
	Vertex
	Exists bool `json:"exists"`
}

// Snapshot copies the graph. It keeps writers waiting meanwhile, and no reader.
func (g *Graph) Snapshot() Snapshot {
	snapshot := g.copy()
	slices.SortFunc(snapshot.Vertices, func(a, b SnapshotVertex) int { return a.Compare(b.Vertex) })
	slices.SortFunc(snapshot.Edges, Edge.Compare)
	snapshot.Edges = slices.Compact(snapshot.Edges)
	return snapshot
}

// copy is the part of Snapshot that needs the lock.
func (g *Graph) copy() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	snapshot := Snapshot{Vertices: make([]SnapshotVertex, 0, g.vertices), Edges: make([]Edge, 0, g.edges.live)}
	g.index.all(func(n *node) {
		v := n.vertex()
		snapshot.Vertices = append(snapshot.Vertices, SnapshotVertex{Vertex: v, Exists: n.exists})
		for at := n.firstOut; at != 0; {
			e := g.edges.at(at)
			snapshot.Edges = append(snapshot.Edges, Edge{From: v, To: e.to.vertex()})
			at = e.nextOut
		}
	})
	return snapshot
}
