package graph

import (
	"cmp"
	"slices"
	"sync"
)

// Vertex names an object. Namespace is empty for cluster-scoped objects, Namespaces among them.
type Vertex struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns for example "Shoot garden-dev/a" or "Seed local".
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

// Edge says that a seed to which To belongs may access From as well: it points toward the seed.
type Edge struct {
	From Vertex `json:"from"`
	To   Vertex `json:"to"`
}

// String returns for example "CloudProfile local → Shoot garden-dev/a".
func (e Edge) String() string { return e.From.String() + " → " + e.To.String() }

// Compare orders edges by From, then To.
func (e Edge) Compare(f Edge) int { return cmp.Or(e.From.Compare(f.From), e.To.Compare(f.To)) }

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

// index knows of each vertex which Seeds it reaches, as the index by destination of Kubernetes' node authorizer does, so
// that a path check is a look-up.
//
// Each node keeps the destinations that it reaches without passing through another one, and over how many of its edges it
// reaches each. Only when such a number becomes 0 or 1 do the nodes before it change. That is cheap, because few edges
// lead to one object, however many leave it: those that its own specification causes, hardly more. A Shoot that moves
// to another seed changes its bindings, its profile, its namespace and what leads to these, and not another Shoot.
//
// Numbers of edges are right only where there is no cycle. Edges lead from a lower to a higher rank of kind (kinds.go), and
// only those that leave a Seed do not, because it may run on a Shoot itself. So Seeds are destinations, and so is a relay in
// each other edge that does not lead to a higher rank, of which edges.go makes none. Cycles can only be among
// destinations, of which there are few: there the index walks whenever an edge between two changes, once for each Seed
// behind it. So nothing is done for the Shoots of a seed when that seed's own Shoot moves.
type index struct {
	// destinations has each destination at its number, and nil at a free number.
	destinations []*node
	// changed has those that other destinations began or ceased to reach since the last refresh.
	changed []*node
}

// reach says that a node reaches a destination over so many of its edges.
type reach struct {
	number uint32
	edges  int32
}

type destination struct {
	number uint32
	// sources are the destinations that reach this one without passing through another.
	sources []reach
	// reachedBy says for each number whether that destination reaches this one; nil if none does. Only for Seeds.
	reachedBy []bool
}

// leadsTo returns whether there is a path from the node to that of a Seed.
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

// find returns the position of a destination in n.reaches, which is sorted by number.
func (n *node) find(number uint32) (at int, found bool) {
	return slices.BinarySearchFunc(n.reaches, number, func(r reach, number uint32) int { return cmp.Compare(r.number, number) })
}

// count notes that one edge more (by 1) or less (by -1) leads from a node to another.
func (x *index) count(from, to *node, by int32) {
	if to.dest != nil {
		x.countDestination(from, to.dest.number, by)
		return
	}
	for i := range to.reaches {
		if by < 0 {
			i = len(to.reaches) - 1 - i // from the end of a sorted list, too, nothing has to move
		}
		x.countDestination(from, to.reaches[i].number, by)
	}
}

// countDestination notes that n reaches a destination over one edge more or less.
func (x *index) countDestination(n *node, number uint32, by int32) {
	at, found := n.find(number)
	if !found {
		n.reaches = slices.Insert(n.reaches, at, reach{number: number})
	}
	n.reaches[at].edges += by
	if found && n.reaches[at].edges > 0 {
		return // neither the first nor the last
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

// refresh walks from those whose sources changed to all Seeds behind them, and from each of these back.
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

// walk returns for each number whether that destination is one of these or found from them.
func (x *index) walk(todo []*node, next func(*node) []reach) []bool {
	found := make([]bool, len(x.destinations))
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.dest == nil || found[n.dest.number] { // nil: it was removed by the same update
			continue
		}
		found[n.dest.number] = true
		for _, r := range next(n) {
			todo = append(todo, x.destinations[r.number])
		}
	}
	return found
}
