package graph

import (
	"slices"
	"sync/atomic"
)

// closure is the set of destinations that reach one, for readers, and what it will be when the update is published.
type closure struct {
	published atomic.Pointer[bitmap]
	next      *bitmap
}

// bitmap is a set of the numbers of destinations. It does not change once it is published.
type bitmap struct{ words []uint64 }

func (b *bitmap) has(id uint32) bool {
	return b != nil && int(id/64) < len(b.words) && b.words[id/64]&(1<<(id%64)) != 0
}

// add says whether the id is new.
func (b *bitmap) add(id uint32) bool {
	if b.has(id) {
		return false
	}
	for int(id/64) >= len(b.words) {
		b.words = append(b.words, 0)
	}
	b.words[id/64] |= 1 << (id % 64)
	return true
}

// narrow takes away what will not be there any more.
func (c *closure) narrow() {
	old := c.published.Load()
	if old == nil || c.next == nil {
		c.published.Store(nil)
		return
	}
	both := &bitmap{words: make([]uint64, min(len(old.words), len(c.next.words)))}
	for i := range both.words {
		both.words[i] = old.words[i] & c.next.words[i]
	}
	if !slices.Equal(both.words, old.words) {
		c.published.Store(both)
	}
}

func (c *closure) publish() {
	if old := c.published.Load(); old == nil || c.next == nil || !slices.Equal(old.words, c.next.words) {
		c.published.Store(c.next)
	}
}

func (g *Graph) addSource(to, from *dest) {
	to.sources = append(to.sources, from.id)
	g.touchDest(to)
}

func (g *Graph) removeSource(to, from *dest) {
	if i := slices.Index(to.sources, from.id); i >= 0 {
		last := len(to.sources) - 1
		to.sources[i] = to.sources[last]
		to.sources = to.sources[:last]
	}
	g.touchDest(to)
}

func (g *Graph) touchDest(d *dest) {
	if !d.dirty {
		d.dirty = true
		g.dirtyDests = append(g.dirtyDests, d)
	}
}

// computeClosures finds the new closure of each destination that another one began or ceased to reach, and of all that
// these reach.
func (g *Graph) computeClosures() {
	var buf [inlineSeeds]uint32
	for i := 0; i < len(g.dirtyDests); i++ { // grows meanwhile
		d := g.dirtyDests[i]
		if d.node.dest.Load() != d {
			continue // not a destination any more
		}
		for _, id := range d.node.appendSeeds(buf[:0]) {
			g.touchDest(g.dests[id])
		}
	}
	for _, d := range g.dirtyDests {
		d.reachedBy.next = nil
		if d.node.kind == KindSeed { // nobody asks for the others
			d.reachedBy.next = g.reachedBy(d)
		}
	}
}

// reachedBy walks back from a destination.
func (g *Graph) reachedBy(d *dest) *bitmap {
	if len(d.sources) == 0 {
		return nil
	}
	seen := &bitmap{words: make([]uint64, (len(g.dests)+63)/64)}
	seen.add(d.id)
	for todo := []uint32{d.id}; len(todo) > 0; {
		last := g.dests[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		for _, source := range last.sources {
			if seen.add(source) && len(g.dests[source].sources) > 0 {
				todo = append(todo, source)
			}
		}
	}
	return seen
}
