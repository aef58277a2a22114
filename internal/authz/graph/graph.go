package graph

import (
	"slices"
	"sync"
)

// Graph is the resource dependency graph. Its methods may be called concurrently.
type Graph struct {
	// writing is held for changes of the graph, and for reads of much of it at once, during which it must not change.
	// Under mu, a long read would block all path checks as soon as a writer waits for it.
	writing sync.Mutex
	// mu guards what follows, and all nodes. It is held for microseconds.
	mu       sync.RWMutex
	vertices map[Vertex]*node
	edges    int
	index    index
}

// node is a vertex in the graph.
type node struct {
	Vertex
	out, in []*edge
	// object is nil if there are only edges that refer to the vertex.
	object *object
	// reaches and dest belong to the index.
	reaches []reach
	dest    *destination
}

// object is an object that exists, with the edges that it causes.
type object struct{ edges []*edge }

// edge is an edge that one object causes. Two objects that cause the same edge have one each.
type edge struct {
	from, to *node
	out, in  uint32 // its positions in from.out and to.in
}

func (e *edge) edge() Edge { return Edge{From: e.from.Vertex, To: e.to.Vertex} }

// New returns an empty graph.
func New() *Graph { return &Graph{vertices: map[Vertex]*node{}} }

// Set replaces all edges of the owner, whose object exists, by these.
func (g *Graph) Set(owner Vertex, edges []Edge) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.vertices[owner].causes(edges) {
		return // readers need not wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.node(owner)
	if n.object == nil {
		n.object = &object{}
	}
	g.replace(n.object, edges)
	g.index.refresh()
}

// Delete removes the owner's object and all edges of it.
func (g *Graph) Delete(owner Vertex) {
	g.writing.Lock()
	defer g.writing.Unlock()
	n := g.vertices[owner]
	if n == nil || n.object == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replace(n.object, nil)
	n.object = nil
	g.dropUnused(n)
	g.index.refresh()
}

// Has returns whether the vertex lives: its object exists, or an edge refers to it.
func (g *Graph) Has(v Vertex) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.vertices[v] != nil
}

// HasPath returns whether there is a path from the vertex to the Seed with this name, which takes the same time in a graph
// of any size. A Seed in the graph has a path to itself.
func (g *Graph) HasPath(from Vertex, seed string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n, goal := g.vertices[from], g.vertices[Vertex{Kind: KindSeed, Name: seed}]
	return n != nil && goal != nil && n.leadsTo(goal)
}

// Len returns the number of vertices and edges; an edge counts once for each object that causes it.
func (g *Graph) Len() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.vertices), g.edges
}

// causes returns whether the node's object exists and causes exactly these edges in this order.
func (n *node) causes(edges []Edge) bool {
	return n != nil && n.object != nil && slices.EqualFunc(n.object.edges, edges, func(e *edge, f Edge) bool {
		return e.from.Vertex == f.From && e.to.Vertex == f.To
	})
}

// replace changes only the edges that differ. It adds before it removes, so that what stays reachable is not touched.
func (g *Graph) replace(o *object, edges []Edge) {
	old := make(map[Edge]*edge, len(o.edges))
	for _, e := range o.edges {
		old[e.edge()] = e
	}
	o.edges = make([]*edge, 0, len(edges))
	for _, wanted := range edges {
		e, known := old[wanted]
		if known && e == nil {
			continue // a duplicate
		}
		if !known {
			e = g.link(g.node(wanted.From), g.node(wanted.To))
		}
		old[wanted] = nil
		o.edges = append(o.edges, e)
	}
	for _, e := range old {
		if e != nil {
			g.unlink(e)
		}
	}
}

// node returns the node of a vertex, a new one if there is none.
func (g *Graph) node(v Vertex) *node {
	n := g.vertices[v]
	if n == nil {
		n = &node{Vertex: v}
		g.vertices[v] = n
		if v.Kind == KindSeed {
			g.index.makeDestination(n)
		}
	}
	return n
}

// dropUnused removes a node that has neither an object nor an edge.
func (g *Graph) dropUnused(n *node) {
	if n.object != nil || len(n.out) > 0 || len(n.in) > 0 {
		return
	}
	if g.vertices[n.Vertex] == n { // not a relay
		delete(g.vertices, n.Vertex)
	}
	g.index.removeDestination(n)
}

// link adds an edge. One that could close a cycle goes through a relay, at which the index stops.
func (g *Graph) link(from, to *node) *edge {
	g.edges++
	if from.Kind != KindSeed && from.Kind.rank() >= to.Kind.rank() {
		relay := &node{Vertex: from.Vertex}
		g.index.makeDestination(relay)
		g.connect(from, relay)
		from = relay
	}
	return g.connect(from, to)
}

// unlink is the inverse of link.
func (g *Graph) unlink(e *edge) {
	g.edges--
	g.disconnect(e)
	if relay := e.from; relay.Kind != KindSeed && relay.dest != nil {
		g.disconnect(relay.in[0])
	}
}

func (g *Graph) connect(from, to *node) *edge {
	e := &edge{from: from, to: to, out: uint32(len(from.out)), in: uint32(len(to.in))}
	from.out, to.in = append(from.out, e), append(to.in, e)
	g.index.count(from, to, 1)
	return e
}

func (g *Graph) disconnect(e *edge) {
	var last *edge
	e.from.out, last = swapRemove(e.from.out, e.out)
	last.out = e.out
	e.to.in, last = swapRemove(e.to.in, e.in)
	last.in = e.in
	g.index.count(e.from, e.to, -1)
	g.dropUnused(e.from)
	g.dropUnused(e.to)
}

// swapRemove removes the edge at a position, where the last one moves.
func swapRemove(edges []*edge, at uint32) (rest []*edge, moved *edge) {
	end := len(edges) - 1
	moved = edges[end]
	edges[at], edges[end] = moved, nil
	return edges[:end], moved
}
