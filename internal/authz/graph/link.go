package graph

// edgeID is the number of an edge in the arena; 0 is none.
type edgeID uint32

// edge is in three lists: what leaves its tail, what comes to its head, and what its owner causes. Two owners that cause
// the same edge have one each.
type edge struct {
	from, to         *node
	nextOut, prevOut edgeID
	nextIn, prevIn   edgeID
	nextOwned        edgeID
}

type edgeKey struct{ from, to *node }

// arena keeps the edges together: half the memory of an object each.
type arena struct {
	chunks []*[chunkEdges]edge
	used   edgeID
	free   edgeID // the first free one; the others follow over nextOwned
	live   int
}

const chunkEdges = 1024

func (a *arena) at(id edgeID) *edge { return &a.chunks[id/chunkEdges][id%chunkEdges] }

func (a *arena) alloc() edgeID {
	a.live++
	if id := a.free; id != 0 {
		a.free = a.at(id).nextOwned
		return id
	}
	a.used++
	if int(a.used/chunkEdges) >= len(a.chunks) {
		a.chunks = append(a.chunks, new([chunkEdges]edge))
	}
	return a.used
}

func (a *arena) release(id edgeID) {
	a.live--
	*a.at(id) = edge{nextOwned: a.free}
	a.free = id
}

// causes says whether the owner causes exactly these edges already, in this order. (In another order, replace finds
// that nothing changes.)
func (g *Graph) causes(o *node, edges []Edge) bool {
	id := o.firstOwned
	for i := range edges {
		if id == 0 {
			return false
		}
		e := g.edges.at(id)
		if !e.from.is(edges[i].From) || !e.to.is(edges[i].To) {
			return false
		}
		id = e.nextOwned
	}
	return id == 0
}

// replace makes the owner cause these edges: the ones that it causes already stay, so an update costs what changes.
func (g *Graph) replace(o *node, edges []Edge) {
	old := g.owned
	for id := o.firstOwned; id != 0; id = g.edges.at(id).nextOwned {
		e := g.edges.at(id)
		old[edgeKey{e.from, e.to}] = id
	}
	var first, last edgeID
	for i := range edges {
		key := edgeKey{g.nodeOf(edges[i].From, o), g.nodeOf(edges[i].To, o)}
		id, had := old[key]
		if had && id == 0 {
			continue // told twice
		}
		if !had {
			id = g.link(key.from, key.to)
		}
		old[key] = 0
		if last == 0 {
			first = id
		} else {
			g.edges.at(last).nextOwned = id
		}
		last = id
	}
	if last != 0 {
		g.edges.at(last).nextOwned = 0
	}
	o.firstOwned = first
	for _, id := range old {
		if id != 0 {
			g.unlink(id)
		}
	}
	if len(old) > 1024 {
		g.owned = map[edgeKey]edgeID{} // clearing a map costs what it once held
		return
	}
	clear(old)
}

// nodeOf returns the vertex's node; nearly every edge of an object has that object's own at one end.
func (g *Graph) nodeOf(v Vertex, owner *node) *node {
	if owner.is(v) {
		return owner
	}
	return g.node(v)
}

// link adds an edge, and lets its tail and all before it reach what its head reaches.
func (g *Graph) link(from, to *node) edgeID {
	if backward(from, to) {
		if from.dest.Load() == nil {
			g.makeDest(from)
		}
		from.dest.Load().back++
	}
	id := g.edges.alloc()
	e := g.edges.at(id)
	*e = edge{from: from, to: to, nextOut: from.firstOut, nextIn: to.firstIn}
	if e.nextOut != 0 {
		g.edges.at(e.nextOut).prevOut = id
	}
	if e.nextIn != 0 {
		g.edges.at(e.nextIn).prevIn = id
	}
	from.firstOut, to.firstIn = id, id
	var buf [inlineSeeds]uint32
	for _, seed := range reachedOver(to, buf[:0]) {
		g.gain(from, seed)
	}
	return id
}

// unlink is the inverse of link.
func (g *Graph) unlink(id edgeID) {
	e := *g.edges.at(id)
	if e.prevOut != 0 {
		g.edges.at(e.prevOut).nextOut = e.nextOut
	} else {
		e.from.firstOut = e.nextOut
	}
	if e.nextOut != 0 {
		g.edges.at(e.nextOut).prevOut = e.prevOut
	}
	if e.prevIn != 0 {
		g.edges.at(e.prevIn).nextIn = e.nextIn
	} else {
		e.to.firstIn = e.nextIn
	}
	if e.nextIn != 0 {
		g.edges.at(e.nextIn).prevIn = e.prevIn
	}
	g.edges.release(id)
	g.loose = append(g.loose, e.from, e.to)

	var buf [inlineSeeds]uint32
	for _, seed := range reachedOver(e.to, buf[:0]) {
		g.lose(e.from, seed)
	}
	if backward(e.from, e.to) {
		if d := e.from.dest.Load(); d.back == 1 {
			g.unmakeDest(e.from)
		} else {
			d.back--
		}
	}
}
