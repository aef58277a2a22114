package graph

import (
	"cmp"
	"slices"
	"sync"
)

// Vertex identifies an object. Namespace is empty for cluster-scoped objects, including Namespaces.
type Vertex struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns, for example, "Shoot garden-dev/a" or "Seed local".
func (v Vertex) String() string {
	if v.Namespace == "" {
		return v.Kind.String() + " " + v.Name
	}
	return v.Kind.String() + " " + v.Namespace + "/" + v.Name
}

// Compare orders vertices by the name of the kind, by namespace and by name.
func (v Vertex) Compare(w Vertex) int {
	if v.Kind != w.Kind {
		return cmp.Or(cmp.Compare(v.Kind.String(), w.Kind.String()), cmp.Compare(v.Kind, w.Kind))
	}
	return cmp.Or(cmp.Compare(v.Namespace, w.Namespace), cmp.Compare(v.Name, w.Name))
}

// Edge declares that a seed to which To belongs may access From as well. It points toward the seed.
type Edge struct {
	From Vertex `json:"from"`
	To   Vertex `json:"to"`
}

// String returns, for example, "CloudProfile local → Shoot garden-dev/a".
func (e Edge) String() string { return e.From.String() + " → " + e.To.String() }

// Compare orders edges by From, then To.
func (e Edge) Compare(f Edge) int { return cmp.Or(e.From.Compare(f.From), e.To.Compare(f.To)) }

// Graph is the resource dependency graph. Its methods may be called concurrently.
type Graph struct {
	// writing is held during changes of the graph, and during long reads, in which the graph must not change. With mu,
	// a long read would block all path checks as soon as a writer waits for it.
	writing sync.Mutex
	// mu guards the following fields and all nodes. It is held for microseconds.
	mu       sync.RWMutex
	vertices map[Vertex]*node
	edges    int
	index    index
}

type node struct {
	Vertex
	out, in []*edge
	// exists is set if the vertex's object exists; causes are the edges that the object causes. Without an object,
	// edges refer to the vertex.
	exists bool
	causes []*edge
	// reaches and dest belong to the index.
	reaches []reach
	dest    *destination
}

// edge is an edge that one object causes. If two objects cause the same edge, each of them has its own.
type edge struct {
	from, to *node
	out, in  uint32 // its indices in from.out and to.in
}

func (e *edge) edge() Edge { return Edge{From: e.from.Vertex, To: e.to.Vertex} }

// New returns an empty graph.
func New() *Graph { return &Graph{vertices: map[Vertex]*node{}} }

// Set replaces all edges of the owner, whose object exists.
func (g *Graph) Set(owner Vertex, edges []Edge) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.vertices[owner].causesExactly(edges) {
		return // avoids blocking readers
	}
	c := g.prepare(owner, edges)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apply(c)
}

// Delete removes the owner's object and all edges that it causes.
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

// Has reports whether the vertex lives: its object exists, or an edge refers to it.
func (g *Graph) Has(v Vertex) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.vertices[v] != nil
}

// HasPath reports whether there is a path from the vertex to the Seed with this name. The time that it takes does not
// depend on the size of the graph. A Seed in the graph has a path to itself.
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

// causesExactly reports whether the node's object exists and causes exactly these edges in this order.
func (n *node) causesExactly(edges []Edge) bool {
	return n != nil && n.exists && slices.EqualFunc(n.causes, edges, func(e *edge, f Edge) bool {
		return e.from.Vertex == f.From && e.to.Vertex == f.To
	})
}

// change is an update of the edges of one object.
type change struct {
	owner                 *node
	nodes                 map[Vertex]*node // new ones
	edges, added, removed []*edge          // the new edges, and how they differ from the current ones
}

// prepare computes a change, and allocates the new nodes and edges: an allocation may have to assist the garbage
// collector, and readers should not wait for it.
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

// nodeOf returns the node of a vertex, and creates it if there is none.
func (g *Graph) nodeOf(c *change, v Vertex) *node {
	n := cmp.Or(g.vertices[v], c.nodes[v])
	if n == nil {
		n = &node{Vertex: v}
		c.nodes[v] = n
	}
	return n
}

// apply applies a change. It adds edges before it removes others, so that the index does not change for vertices that
// remain reachable.
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

// link adds an edge. An edge that could close a cycle goes through a relay, which is a destination of the index.
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

// swapRemove removes the edge at an index, and moves the last edge there.
func swapRemove(edges []*edge, at uint32) (rest []*edge, moved *edge) {
	end := len(edges) - 1
	moved = edges[end]
	edges[at], edges[end] = moved, nil
	return edges[:end], moved
}

// index has the Seeds that each vertex reaches, like the index by destination of Kubernetes' node authorizer, so that a
// path check is a lookup.
//
// Each node has the destinations that it reaches without passing through another destination, and the number of its
// edges over which it reaches each. Only if such a number becomes 0 or 1 do the nodes before it change. That is cheap,
// because few edges lead to an object, however many leave it: hardly more than those that its own specification causes.
// A Shoot that moves to another seed changes its bindings, its profile, its namespace and the vertices that lead to
// these, but no other Shoot.
//
// Numbers of edges are correct only without cycles. Edges lead from a lower to a higher rank of kind (kinds.go), except
// those that leave a Seed, because the Seed may run on a Shoot. So Seeds are destinations, and so is a relay in every
// other edge that does not lead to a higher rank, of which edges.go creates none. Cycles are possible only among
// destinations, of which there are few: when an edge between two of them changes, the index walks them, once for each
// Seed behind the edge. So the Shoots of a seed do not change when the Shoot on which the seed runs moves.
type index struct {
	// destinations has each destination at the index of its number, and nil at a free number.
	destinations []*node
	// changed has the destinations whose sources have changed since the last refresh.
	changed []*node
}

// reach is a destination that a node reaches, and the number of the node's edges that lead to it.
type reach struct {
	number uint32
	edges  int32
}

type destination struct {
	number uint32
	// sources are the destinations that reach this one without passing through another.
	sources []reach
	// reachedBy is, for each number, whether that destination reaches this one; nil if none does. It is set for Seeds
	// only.
	reachedBy []bool
}

// leadsTo reports whether there is a path from the node to that of a Seed.
func (n *node) leadsTo(seed *node) bool {
	if n.dest != nil {
		return n == seed || seed.dest.isReachedBy(n.dest.number)
	}
	if _, found := n.find(seed.dest.number); found {
		return true
	}
	if seed.dest.reachedBy == nil {
		return false
	}
	for _, r := range n.reaches {
		if seed.dest.isReachedBy(r.number) {
			return true
		}
	}
	return false
}

func (d *destination) isReachedBy(number uint32) bool {
	return int(number) < len(d.reachedBy) && d.reachedBy[number]
}

// find returns the index of a destination in n.reaches, which is sorted by number.
func (n *node) find(number uint32) (at int, found bool) {
	return slices.BinarySearchFunc(n.reaches, number, func(r reach, number uint32) int { return cmp.Compare(r.number, number) })
}

// count records that one more edge (by 1) or one less (by -1) leads from a node to another.
func (x *index) count(from, to *node, by int32) {
	if to.dest != nil {
		x.countDestination(from, to.dest.number, by)
		return
	}
	for i := range to.reaches {
		if by < 0 {
			i = len(to.reaches) - 1 - i // removing from the end of the sorted list moves no elements
		}
		x.countDestination(from, to.reaches[i].number, by)
	}
}

// countDestination records that n reaches a destination over one more or one less edge.
func (x *index) countDestination(n *node, number uint32, by int32) {
	at, found := n.find(number)
	if !found {
		n.reaches = slices.Insert(n.reaches, at, reach{number: number})
	}
	n.reaches[at].edges += by
	if found && n.reaches[at].edges > 0 {
		return // neither the first edge nor the last
	}
	if by < 0 {
		n.reaches = slices.Delete(n.reaches, at, at+1)
	}
	if n.dest == nil {
		for _, e := range n.in {
			x.countDestination(e.from, number, by)
		}
		return
	}
	to := x.destinations[number]
	x.changed = append(x.changed, to)
	if by > 0 {
		to.dest.sources = append(to.dest.sources, reach{number: n.dest.number})
	} else {
		to.dest.sources = slices.DeleteFunc(to.dest.sources, func(r reach) bool { return r.number == n.dest.number })
	}
}

func (x *index) makeDestination(n *node) {
	number := slices.Index(x.destinations, nil)
	if number < 0 {
		number = len(x.destinations)
		x.destinations = append(x.destinations, nil)
	}
	x.destinations[number], n.dest = n, &destination{number: uint32(number)}
}

// removeDestination frees the number of a node without edges.
func (x *index) removeDestination(n *node) {
	if n.dest != nil {
		x.destinations[n.dest.number], n.dest = nil, nil
	}
}

// refresh walks from the changed destinations to all Seeds behind them, and recomputes reachedBy of these Seeds.
func (x *index) refresh() {
	if len(x.changed) == 0 {
		return
	}
	for number, affected := range x.walk(x.changed, func(n *node) []reach { return n.reaches }) {
		if n := x.destinations[number]; affected && n.Kind == KindSeed {
			n.dest.reachedBy = nil
			if len(n.dest.sources) > 0 {
				n.dest.reachedBy = x.walk([]*node{n}, func(n *node) []reach { return n.dest.sources })
			}
		}
	}
	x.changed = nil
}

// walk returns, for each number, whether that destination is in todo or reachable from there.
func (x *index) walk(todo []*node, next func(*node) []reach) []bool {
	found := make([]bool, len(x.destinations))
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.dest == nil || found[n.dest.number] { // nil: the node was removed by the same update
			continue
		}
		found[n.dest.number] = true
		for _, r := range next(n) {
			todo = append(todo, x.destinations[r.number])
		}
	}
	return found
}
