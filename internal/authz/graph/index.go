package graph

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// index finds the node of a vertex. One writer at a time (Graph.mu), any number of readers without a lock.
//
// It is split in shards, so that growing one takes microseconds. A shard is a table of buckets of one cache line: seven
// nodes and a byte of each one's hash, so that nearly always only the right node is looked at. A node never moves inside
// a table; a table that is full is replaced by a larger one. A reader that still holds the old table finds the same
// nodes, and a node that died has no seeds, so it never sees more than there was.
type index struct {
	seed   maphash.Seed
	shards [shardCount]atomic.Pointer[table]
}

const (
	shardCount  = 256
	bucketSlots = 7
	// overflowed is set in the tags of a bucket that was full once: what belongs to it may be in the next one.
	overflowed = uint64(1) << 63
	everyByte  = 0x0101010101010101
	slotBytes  = 0x0080808080808080 // the high bits of the seven tags
)

type table struct {
	mask    uint64
	buckets []bucket
	live    int // nodes in it
	flagged int // buckets that overflowed
}

type bucket struct {
	tags  atomic.Uint64
	nodes [bucketSlots]atomic.Pointer[node]
}

func newTable(buckets int) *table {
	return &table{mask: uint64(buckets - 1), buckets: make([]bucket, buckets)}
}

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	for i := range x.shards {
		x.shards[i].Store(newTable(1))
	}
	return x
}

// hash depends on a secret of the process, so that nobody can choose names that collide.
func (x *index) hash(v Vertex) uint64 {
	return x.combine(maphash.String(x.seed, v.Name), v.Namespace, v.Kind)
}

// hashOf is the hash of the node's vertex.
func (x *index) hashOf(n *node) uint64 {
	if n.length == longName {
		return x.combine(maphash.String(x.seed, *n.long), n.namespace, n.kind)
	}
	return x.combine(maphash.Bytes(x.seed, n.name[:n.length]), n.namespace, n.kind)
}

func (x *index) combine(hash uint64, namespace string, kind Kind) uint64 {
	if namespace != "" {
		high, low := bits.Mul64(hash^0x9e3779b97f4a7c15, maphash.String(x.seed, namespace)|1)
		hash = high ^ low
	}
	high, low := bits.Mul64(hash, 0xd6e8feb86659fd93+2*uint64(kind))
	return high ^ low
}

func tagOf(hash uint64) uint64 { return max(hash>>40&0xff, 1) }

// matches returns a mask with the high bit of each slot whose tag may be this one; above the lowest there may be false
// ones, and the node's key decides.
func matches(tags, tag uint64) uint64 {
	x := tags ^ tag*everyByte
	return (x - everyByte) &^ x & slotBytes
}

// find returns the node of a vertex, or nil.
func (x *index) find(v Vertex) *node { return x.start(v).find(v) }

// search is a search that knows its first bucket, and has asked memory for it.
type search struct {
	table    *table
	at, tags uint64
	tag      uint64
}

// start begins a search. In a large graph the bucket is not in a cache, and another search can go on until it is.
func (x *index) start(v Vertex) search {
	hash := x.hash(v)
	t := x.shards[hash>>56].Load()
	at := hash & t.mask
	return search{t, at, t.buckets[at].tags.Load(), tagOf(hash)}
}

func (s search) find(v Vertex) *node {
	// No more steps than there are buckets, should they all have overflowed.
	for steps := len(s.table.buckets); ; {
		b := &s.table.buckets[s.at]
		for m := matches(s.tags, s.tag); m != 0; m &= m - 1 {
			if n := b.nodes[bits.TrailingZeros64(m)/8].Load(); n != nil && n.is(v) {
				return n
			}
		}
		if steps--; s.tags&overflowed == 0 || steps == 0 {
			return nil
		}
		s.at = (s.at + 1) & s.table.mask
		s.tags = s.table.buckets[s.at].tags.Load()
	}
}

// insert adds a node that is not in the index.
func (x *index) insert(n *node) {
	hash := x.hashOf(n)
	shard := &x.shards[hash>>56]
	t := shard.Load()
	if capacity := len(t.buckets) * bucketSlots; (t.live+1)*10 > capacity*7 || t.flagged*3 > len(t.buckets) {
		t = x.rebuilt(t)
		t.put(n, hash)
		shard.Store(t)
		return
	}
	t.put(n, hash)
}

// rebuilt copies a table that is full, or in which too many buckets overflowed over time.
func (x *index) rebuilt(old *table) *table {
	size := len(old.buckets)
	if old.live*2 >= size*bucketSlots {
		size *= 2
	}
	for ; ; size *= 2 {
		t := newTable(size)
		old.all(func(n *node) { t.put(n, x.hashOf(n)) })
		if t.flagged*3 <= size {
			return t
		}
	}
}

func (t *table) put(n *node, hash uint64) {
	t.live++
	tag := tagOf(hash)
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		b := &t.buckets[at]
		tags := b.tags.Load()
		for slot := range bucketSlots {
			if tags>>(8*slot)&0xff == 0 {
				b.nodes[slot].Store(n)
				b.tags.Store(tags | tag<<(8*slot))
				return
			}
		}
		if tags&overflowed == 0 {
			b.tags.Store(tags | overflowed)
			t.flagged++
		}
	}
}

// remove takes a node out that is in the index.
func (x *index) remove(n *node) {
	hash := x.hashOf(n)
	t := x.shards[hash>>56].Load()
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		b := &t.buckets[at]
		for slot := range bucketSlots {
			if b.nodes[slot].Load() == n {
				b.tags.Store(b.tags.Load() &^ (0xff << (8 * slot)))
				b.nodes[slot].Store(nil)
				t.live--
				return
			}
		}
	}
}

func (t *table) all(visit func(*node)) {
	for i := range t.buckets {
		for slot := range bucketSlots {
			if n := t.buckets[i].nodes[slot].Load(); n != nil {
				visit(n)
			}
		}
	}
}

// all visits every node; only for the writer.
func (x *index) all(visit func(*node)) {
	for i := range x.shards {
		x.shards[i].Load().all(visit)
	}
}
