package graph

import (
	"slices"
	"sync/atomic"
)

// The destinations a node reaches, with counts for the writer, without for the readers. Nearly every vertex reaches one
// or two: they are packed in one word, which readers load at once. A few reach more: they have a list; very few reach
// very many: they have a count and a bit for each destination there is.
const (
	inlineSeeds = 3
	seedBits    = 20
	seedMask    = 1<<seedBits - 1
	// inLarge in node.seeds says that they are in node.large; isDest that the node is a destination itself, and what it
	// reaches is in the closures (closure.go).
	inLarge = uint64(1) << 63
	isDest  = uint64(1) << 62

	// A list longer than mostListed becomes bits, and bits fewer than fewestDense become a list.
	mostListed  = 32
	fewestDense = 16
)

// largeSet is the destinations of a node that do not fit in a word.
type largeSet struct {
	published atomic.Pointer[seedIDs]

	// For the writer: a list with counts, or, when dense is not nil, a count for each number.
	ids, counts []uint32
	dense       []uint32
	n           int
	// changed is which numbers of dense changed since they were published.
	changed []uint32
}

// seedIDs is for readers: a list that never changes, or bits that do.
type seedIDs struct {
	ids  []uint32
	bits []atomic.Uint64
}

// add counts one more edge over which the node reaches the destination, and says whether it is the first.
func (n *node) add(id uint32) bool {
	if large := n.large.Load(); large != nil {
		return large.add(id)
	}
	slot := 0
	for ; slot < inlineSeeds; slot++ {
		at := uint32(n.next >> (slot * seedBits) & seedMask)
		if at == id {
			n.counts[slot]++
			return false
		}
		if at == 0 {
			break
		}
	}
	if slot < inlineSeeds && id <= seedMask {
		n.next |= uint64(id) << (slot * seedBits)
		n.counts[slot] = 1
		return true
	}
	large := &largeSet{}
	for i := range slot {
		large.ids = append(large.ids, uint32(n.next>>(i*seedBits)&seedMask))
		large.counts = append(large.counts, n.counts[i])
	}
	large.n = slot
	n.large.Store(large) // readers look only once it is published
	return large.add(id)
}

// remove counts one edge less, and says whether it was the last.
func (n *node) remove(id uint32) bool {
	if large := n.large.Load(); large != nil {
		return large.remove(id)
	}
	last := inlineSeeds - 1
	for last >= 0 && n.next>>(last*seedBits)&seedMask == 0 {
		last--
	}
	for slot := 0; slot <= last; slot++ {
		if uint32(n.next>>(slot*seedBits)&seedMask) != id {
			continue
		}
		if n.counts[slot]--; n.counts[slot] > 0 {
			return false
		}
		moved := n.next >> (last * seedBits) & seedMask
		n.next &^= seedMask << (last * seedBits)
		if slot != last {
			n.next = n.next&^(seedMask<<(slot*seedBits)) | moved<<(slot*seedBits)
		}
		n.counts[slot], n.counts[last] = n.counts[last], 0
		return true
	}
	return false
}

// appendSeeds appends the destinations as the update leaves them.
func (n *node) appendSeeds(to []uint32) []uint32 {
	if large := n.large.Load(); large != nil {
		return large.appendIDs(to)
	}
	for word := n.next; word != 0; word >>= seedBits {
		to = append(to, uint32(word&seedMask))
	}
	return to
}

// word is what readers see of a node without a large set.
func (n *node) word() uint64 {
	if n.dest.Load() != nil {
		return isDest
	}
	return n.next
}

// publish lets the readers see them.
func (n *node) publish() {
	large := n.large.Load()
	if large == nil || n.dest.Load() != nil {
		n.seeds.Store(n.word())
		return
	}
	if large.dense != nil && large.n < fewestDense {
		large.toList()
	}
	if large.n < inlineSeeds && large.dense == nil && (large.n == 0 || slices.Max(large.ids) <= seedMask) {
		n.next, n.counts = 0, [inlineSeeds]uint32{}
		for i, id := range large.ids {
			n.next |= uint64(id) << (i * seedBits)
			n.counts[i] = large.counts[i]
		}
		n.seeds.Store(n.next)
		n.large.Store(nil)
		return
	}
	large.publish()
	n.seeds.Store(inLarge)
}

func (s *largeSet) add(id uint32) bool {
	if s.dense != nil {
		s.grow(id)
		if s.dense[id]++; s.dense[id] > 1 {
			return false
		}
		s.n++
		s.changed = append(s.changed, id)
		return true
	}
	if i := slices.Index(s.ids, id); i >= 0 {
		s.counts[i]++
		return false
	}
	s.ids, s.counts = append(s.ids, id), append(s.counts, 1)
	s.n++
	if s.n > mostListed {
		s.toDense()
	}
	return true
}

func (s *largeSet) remove(id uint32) bool {
	if s.dense != nil {
		if int(id) >= len(s.dense) || s.dense[id] == 0 {
			return false
		}
		if s.dense[id]--; s.dense[id] > 0 {
			return false
		}
		s.n--
		s.changed = append(s.changed, id)
		return true
	}
	i := slices.Index(s.ids, id)
	if i < 0 {
		return false
	}
	if s.counts[i]--; s.counts[i] > 0 {
		return false
	}
	last := len(s.ids) - 1
	s.ids[i], s.counts[i] = s.ids[last], s.counts[last]
	s.ids, s.counts = s.ids[:last], s.counts[:last]
	s.n--
	return true
}

func (s *largeSet) appendIDs(to []uint32) []uint32 {
	if s.dense == nil {
		return append(to, s.ids...)
	}
	for id, count := range s.dense {
		if count > 0 {
			to = append(to, uint32(id))
		}
	}
	return to
}

// grow makes room for a number, and some more, in whole words.
func (s *largeSet) grow(id uint32) {
	if int(id) < len(s.dense) {
		return
	}
	size := (max(int(id)+1, len(s.dense)*5/4) + 63) &^ 63
	dense := make([]uint32, size)
	copy(dense, s.dense)
	s.dense = dense
}

func (s *largeSet) toDense() {
	s.grow(slices.Max(s.ids))
	for i, id := range s.ids {
		s.dense[id] = s.counts[i]
	}
	s.ids, s.counts = nil, nil
}

func (s *largeSet) toList() {
	dense := s.dense
	s.dense, s.changed = nil, nil
	for id, count := range dense {
		if count > 0 {
			s.ids, s.counts = append(s.ids, uint32(id)), append(s.counts, count)
		}
	}
}

func (s *largeSet) publish() {
	if s.dense == nil {
		s.published.Store(&seedIDs{ids: slices.Clone(s.ids)})
		return
	}
	old := s.published.Load()
	if old == nil || len(old.bits)*64 != len(s.dense) {
		s.publishAllBits()
	} else {
		s.publishChangedBits(old.bits)
	}
	s.changed = s.changed[:0]
}

func (s *largeSet) publishAllBits() {
	bits := make([]atomic.Uint64, len(s.dense)/64)
	for id, count := range s.dense {
		if count > 0 {
			bits[id/64].Store(bits[id/64].Load() | 1<<(id%64))
		}
	}
	s.published.Store(&seedIDs{bits: bits})
}

// publishChangedBits sets before it clears: what is reached before and after over different seeds stays so.
func (s *largeSet) publishChangedBits(bits []atomic.Uint64) {
	for _, id := range s.changed {
		if s.dense[id] > 0 {
			bits[id/64].Store(bits[id/64].Load() | 1<<(id%64))
		}
	}
	for _, id := range s.changed {
		if s.dense[id] == 0 {
			bits[id/64].Store(bits[id/64].Load() &^ (1 << (id % 64)))
		}
	}
}

// meets says whether the node reaches the destination itself or one of those that reach it. It is not stable when the
// node is just being changed from many to few or is just becoming a destination, and has to be asked again.
func (n *node) meets(id uint32, reachedBy *bitmap) (hit, stable bool) {
	word := n.seeds.Load()
	if word&(inLarge|isDest) == 0 {
		for ; word != 0; word >>= seedBits {
			if at := uint32(word & seedMask); at == id || reachedBy.has(at) {
				return true, true
			}
		}
		return false, true
	}
	if word&isDest != 0 {
		own := n.dest.Load()
		if own == nil {
			return false, false
		}
		hit = own.id == id || reachedBy.has(own.id)
		return hit, n.dest.Load() == own
	}
	large := n.large.Load()
	if large == nil {
		return false, false
	}
	published := large.published.Load()
	if published == nil {
		return false, false
	}
	return published.meets(id, reachedBy), true
}

func (s *seedIDs) meets(id uint32, reachedBy *bitmap) bool {
	for _, at := range s.ids {
		if at == id || reachedBy.has(at) {
			return true
		}
	}
	if int(id/64) < len(s.bits) && s.bits[id/64].Load()&(1<<(id%64)) != 0 {
		return true
	}
	if reachedBy == nil {
		return false
	}
	for i := range min(len(s.bits), len(reachedBy.words)) {
		if reachedBy.words[i] != 0 && s.bits[i].Load()&reachedBy.words[i] != 0 {
			return true
		}
	}
	return false
}
