package graph

import (
	"cmp"
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
	// exists says that the vertex's object does, and causes are the edges that it causes. Without, edges refer to the vertex.
	exists bool
	causes []*edge
	// reaches and dest belong to the index.
	reaches []reach
	dest    *destination
}

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
	if g.vertices[owner].causesExactly(edges) {
		return // readers need not wait
	}
	c := g.prepare(owner, edges)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apply(c)
}

// Delete removes the owner's object and all edges of it.
func (g *Graph) Delete(owner Vertex) {
	g.writing.Lock()
	defer g.writing.Unlock()
	n := g.vertices[owner]
	if n == nil || !n.exists {
		return
	}
	c := g.prepare(owner, nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apply(c)
	n.exists = false
	g.dropUnused(n)
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

// causesExactly returns whether the node's object exists and causes exactly these edges in this order.
func (n *node) causesExactly(edges []Edge) bool {
	return n != nil && n.exists && slices.EqualFunc(n.causes, edges, func(e *edge, f Edge) bool {
		return e.from.Vertex == f.From && e.to.Vertex == f.To
	})
}

// change is an update of the edges of one object.
type change struct {
	owner                 *node
	nodes                 map[Vertex]*node // new ones
	edges, added, removed []*edge          // those that the object is to have, and how they differ from those that it has
}

// prepare finds out which edges differ, and allocates: an allocation may have to help the garbage collector, for which
// readers should not wait.
func (g *Graph) prepare(owner Vertex, edges []Edge) *change {
	c := &change{nodes: map[Vertex]*node{}, edges: make([]*edge, 0, len(edges))}
	c.owner = g.nodeOf(c, owner)
	old := make(map[Edge]*edge, len(edges))
	for _, e := range c.owner.causes {
		old[e.edge()] = e
	}
	for _, wanted := range edges {
		e, known := old[wanted]
		if known && e == nil {
			continue // a duplicate
		}
		if !known {
			e = &edge{from: g.nodeOf(c, wanted.From), to: g.nodeOf(c, wanted.To)}
			e.from.out, e.to.in = slices.Grow(e.from.out, 1), slices.Grow(e.to.in, 1)
			c.added = append(c.added, e)
		}
		old[wanted] = nil
		c.edges = append(c.edges, e)
	}
	for _, e := range old {
		if e != nil {
			c.removed = append(c.removed, e)
		}
	}
	return c
}

// nodeOf returns the node of a vertex, a new one if there is none.
func (g *Graph) nodeOf(c *change, v Vertex) *node {
	n := cmp.Or(g.vertices[v], c.nodes[v])
	if n == nil {
		n = &node{Vertex: v}
		c.nodes[v] = n
	}
	return n
}

// apply makes a change. It adds before it removes, so that what stays reachable is not touched.
func (g *Graph) apply(c *change) {
	for v, n := range c.nodes {
		g.vertices[v] = n
		if v.Kind == KindSeed {
			g.index.makeDestination(n)
		}
	}
	c.owner.exists, c.owner.causes = true, c.edges
	for _, e := range c.added {
		g.link(e)
	}
	for _, e := range c.removed {
		g.unlink(e)
	}
	g.index.refresh()
}

// dropUnused removes a node that has neither an object nor an edge.
func (g *Graph) dropUnused(n *node) {
	if n.exists || len(n.out) > 0 || len(n.in) > 0 {
		return
	}
	if g.vertices[n.Vertex] == n { // not a relay
		delete(g.vertices, n.Vertex)
	}
	g.index.removeDestination(n)
}

// link adds an edge. One that could close a cycle goes through a relay, at which the index stops.
func (g *Graph) link(e *edge) {
	g.edges++
	if e.from.Kind != KindSeed && e.from.Kind.rank() >= e.to.Kind.rank() {
		relay := &node{Vertex: e.from.Vertex}
		g.index.makeDestination(relay)
		g.connect(&edge{from: e.from, to: relay})
		e.from = relay
	}
	g.connect(e)
}

// unlink is the inverse of link.
func (g *Graph) unlink(e *edge) {
	g.edges--
	g.disconnect(e)
	if relay := e.from; relay.Kind != KindSeed && relay.dest != nil {
		g.disconnect(relay.in[0])
	}
}

func (g *Graph) connect(e *edge) {
	e.out, e.in = uint32(len(e.from.out)), uint32(len(e.to.in))
	e.from.out, e.to.in = append(e.from.out, e), append(e.to.in, e)
	g.index.count(e.from, e.to, 1)
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
