package graph

import "sync"

// Graph is the resource dependency graph. Set and Delete may be called by many at once, and follow one another; readers
// (Has, HasPath) wait for nobody. Make one with New.
type Graph struct {
	index *index

	// mu guards all that follows, and every field of a node that is not atomic.
	mu       sync.Mutex
	edges    arena
	vertices int
	// namespaces holds each namespace's name once, and how many nodes use it.
	namespaces map[string]*namespace
	// dests is every destination by its number; number 0 is none.
	dests     []*dest
	freeDests []uint32

	// What follows belongs to the update that is going on, and is empty between updates.
	dirty      []*node // whose seeds changed
	loose      []*node // that lost an edge or their object, and may have to go
	dirtyDests []*dest // that other destinations began or ceased to reach
	goneDests  []*dest
	owned      map[edgeKey]edgeID
}

type namespace struct {
	name string
	uses int
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		index:      newIndex(),
		namespaces: map[string]*namespace{},
		dests:      make([]*dest, 1),
		owned:      map[edgeKey]edgeID{},
	}
}

// Set says that the owner's object exists and causes exactly these edges: they take the place of all that it caused
// before, at once. To tell the same again changes nothing.
func (g *Graph) Set(owner Vertex, edges []Edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.node(owner)
	o.exists = true
	if !g.causes(o, edges) {
		g.replace(o, edges)
	}
	g.finish()
}

// Delete says that the owner's object is gone, and with it all that it caused.
func (g *Graph) Delete(owner Vertex) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.index.find(owner)
	if o == nil || !o.exists {
		return
	}
	g.replace(o, nil)
	o.exists = false
	g.loose = append(g.loose, o)
	g.finish()
}

// node returns the vertex's node, a new one if there is none.
func (g *Graph) node(v Vertex) *node {
	if n := g.index.find(v); n != nil {
		return n
	}
	n := newNode(v, g.useNamespace(v.Namespace))
	if n.kind == KindSeed {
		g.newDest(n)
	}
	g.vertices++
	g.index.insert(n)
	return n
}

// finish lets the readers see what an update changed, and drops the vertices that nothing holds any more.
func (g *Graph) finish() {
	g.publish()
	for _, n := range g.loose {
		g.drop(n)
	}
	clear(g.loose)
	g.loose = g.loose[:0]
	g.freeGoneDests()
}

// drop takes a node away that neither an object nor an edge holds. Nothing reaches anything over it then.
func (g *Graph) drop(n *node) {
	if n.exists || n.firstIn != 0 || n.firstOut != 0 || n.gone {
		return
	}
	if d := n.dest.Load(); d != nil {
		n.seeds.Store(0)
		n.dest.Store(nil)
		g.goneDests = append(g.goneDests, d)
	}
	n.gone = true
	g.index.remove(n)
	g.vertices--
	g.releaseNamespace(n.namespace)
}

func (g *Graph) useNamespace(name string) string {
	if name == "" {
		return ""
	}
	ns := g.namespaces[name]
	if ns == nil {
		ns = &namespace{name: name}
		g.namespaces[name] = ns
	}
	ns.uses++
	return ns.name
}

func (g *Graph) releaseNamespace(name string) {
	if ns := g.namespaces[name]; ns != nil {
		if ns.uses--; ns.uses == 0 {
			delete(g.namespaces, name)
		}
	}
}
