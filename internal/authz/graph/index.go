package graph

import (
	"cmp"
	"slices"
)

// index knows of each vertex which Seeds it reaches, as the index by destination of Kubernetes' node authorizer does, so
// that a path check is a look-up.
//
// Each node keeps the destinations that it reaches without passing through another one, and over how many of its edges it
// reaches each. Only when such a number becomes 0 or 1 do the nodes before it change. That is cheap, because few edges
// lead to one object, however many leave it: those that its own specification causes, hardly more. A Shoot that moves
// to another seed changes its bindings, its profile, its namespace and what leads to these, and not another Shoot.
//
// Numbers of edges are right only where there is no cycle. Edges lead from a lower to a higher rank of kind (vertex.go), and
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
