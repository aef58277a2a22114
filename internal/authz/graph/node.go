package graph

import "sync/atomic"

// node is a vertex in memory. What names it never changes, because readers look at it without a lock.
//
// A path check in a large graph takes as long as memory does, so what it reads is together in the first 64 bytes: also
// the name, unless it is very long. The size is just below one of the allocator's, 128 bytes, so it starts at a cache line.
type node struct {
	kind   Kind
	length uint8 // of the name; longName if it is in long
	name   [shortName]byte

	namespace string
	// seeds is the destinations it reaches, for readers: see seedset.go.
	seeds atomic.Uint64

	large atomic.Pointer[largeSet]
	// dest is set while the node is a destination: see reach.go.
	dest atomic.Pointer[dest]
	long *string
	// next is what seeds will be when the update is published, and counts says over how many edges each is reached.
	next   uint64
	counts [inlineSeeds]uint32

	firstOut, firstIn, firstOwned edgeID

	exists bool // its object does
	dirty  bool // it has to be published
	gone   bool // it is not in the index any more
}

const (
	shortName = 38
	longName  = 255
)

func newNode(v Vertex, namespace string) *node {
	n := &node{kind: v.Kind, namespace: namespace}
	if len(v.Name) > shortName {
		n.length, n.long = longName, &v.Name
	} else {
		n.length = uint8(copy(n.name[:], v.Name))
	}
	return n
}

func (n *node) is(v Vertex) bool {
	if n.length == longName {
		return n.kind == v.Kind && *n.long == v.Name && n.namespace == v.Namespace
	}
	return n.kind == v.Kind && string(n.name[:n.length]) == v.Name && n.namespace == v.Namespace
}

func (n *node) vertex() Vertex {
	v := Vertex{Kind: n.kind, Namespace: n.namespace}
	if n.length == longName {
		v.Name = *n.long
	} else {
		v.Name = string(n.name[:n.length])
	}
	return v
}
