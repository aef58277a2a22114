package graph

// Who reaches which seed is kept for each vertex, and changed where an edge comes or goes; a path check then is a look-up.
//
// A destination is a vertex at which that stops: every Seed, and, so that cycles need no thought, every vertex with an
// edge that does not lead to a higher rank (vertex.go; the document has none). A vertex keeps the destinations that it
// reaches without passing through another one, and over how many of its edges it reaches each. Between vertices that are
// no destinations every edge leads to a higher rank, so there is no cycle among them: a count that reaches zero means
// that there is no way, and one that does not that there is one.
//
// What destinations reach over one another is kept apart (closure.go): a seed on a shoot on another seed. They are few.
// So the shoots of a seed do not have to be touched when its ManagedSeed comes, goes, or moves.

// dest is a destination. It belongs to one node and is never used again for another one, though its number is.
type dest struct {
	id   uint32
	node *node
	// back counts the edges that do not lead to a higher rank.
	back uint32
	// sources is the destinations that reach this one without passing through another.
	sources []uint32
	// reachedBy is all destinations that reach this one, itself included; nil if that is only itself.
	reachedBy closure
	dirty     bool
}

func backward(from, to *node) bool {
	return from.kind != KindSeed && from.kind.rank() >= to.kind.rank()
}

// reachedOver returns what a vertex reaches over an edge to n.
func reachedOver(n *node, buf []uint32) []uint32 {
	if d := n.dest.Load(); d != nil {
		return append(buf, d.id)
	}
	return n.appendSeeds(buf)
}

// gain says that n reaches a destination over one more edge.
func (g *Graph) gain(n *node, seed uint32) {
	if !n.add(seed) {
		return
	}
	g.touch(n)
	if d := n.dest.Load(); d != nil {
		g.addSource(g.dests[seed], d)
		return
	}
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		g.gain(g.edges.at(id).from, seed)
	}
}

// lose is the inverse of gain.
func (g *Graph) lose(n *node, seed uint32) {
	if !n.remove(seed) {
		return
	}
	g.touch(n)
	if d := n.dest.Load(); d != nil {
		g.removeSource(g.dests[seed], d)
		return
	}
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		g.lose(g.edges.at(id).from, seed)
	}
}

// touch remembers that n has to be published.
func (g *Graph) touch(n *node) {
	if !n.dirty {
		n.dirty = true
		g.dirty = append(g.dirty, n)
	}
}

func (g *Graph) newDest(n *node) *dest {
	d := &dest{node: n}
	g.touch(n)
	if last := len(g.freeDests) - 1; last >= 0 {
		d.id = g.freeDests[last]
		g.freeDests = g.freeDests[:last]
		g.dests[d.id] = d
	} else {
		d.id = uint32(len(g.dests))
		g.dests = append(g.dests, d)
	}
	n.dest.Store(d)
	return d
}

// freeGoneDests gives the numbers back. Only when everything is published, so that no reader takes one for another.
func (g *Graph) freeGoneDests() {
	for _, d := range g.goneDests {
		g.dests[d.id] = nil
		g.freeDests = append(g.freeDests, d.id)
	}
	clear(g.goneDests)
	g.goneDests = g.goneDests[:0]
}

// makeDest makes n a destination: what comes before it reaches n, and over n what n reaches.
func (g *Graph) makeDest(n *node) {
	seeds := n.appendSeeds(nil)
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		for _, seed := range seeds {
			g.lose(g.edges.at(id).from, seed)
		}
	}
	d := g.newDest(n)
	for _, seed := range seeds {
		g.addSource(g.dests[seed], d)
	}
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		g.gain(g.edges.at(id).from, d.id)
	}
}

// unmakeDest is the inverse of makeDest.
func (g *Graph) unmakeDest(n *node) {
	d := n.dest.Load()
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		g.lose(g.edges.at(id).from, d.id)
	}
	seeds := n.appendSeeds(nil)
	for _, seed := range seeds {
		g.removeSource(g.dests[seed], d)
	}
	n.dest.Store(nil)
	g.touch(n)
	g.goneDests = append(g.goneDests, d)
	for id := n.firstIn; id != 0; id = g.edges.at(id).nextIn {
		for _, seed := range seeds {
			g.gain(g.edges.at(id).from, seed)
		}
	}
}

// publish lets the readers see the update. A vertex changes from what it was to what it is in one step. Where both what a
// vertex reaches and what its destinations reach change, it has for a moment the paths that are both old and new: never
// one that neither has.
func (g *Graph) publish() {
	g.computeClosures()
	for _, d := range g.dirtyDests {
		d.reachedBy.narrow()
	}
	for _, n := range g.dirty {
		n.publish()
		n.dirty = false
	}
	for _, d := range g.dirtyDests {
		d.reachedBy.publish()
		d.dirty = false
	}
	clear(g.dirty)
	clear(g.dirtyDests)
	g.dirty, g.dirtyDests = g.dirty[:0], g.dirtyDests[:0]
}
