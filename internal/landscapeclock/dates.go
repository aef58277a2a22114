package landscapeclock

import (
	"container/heap"
	"time"

	"k8s.io/utils/clock"
)

// dueMargin is how long after a date Advance stops, because a controller begins to wait for it a moment after UntilDue has returned.
const dueMargin = 100 * time.Millisecond

// dates are the times at which something is due that Advance has to let happen before it goes on, in milliseconds.
type dates struct {
	order milliseconds
	at    map[int64]bool
}

func (d *dates) add(t time.Time) {
	at := t.Add(dueMargin).UnixMilli()
	if !d.at[at] {
		d.at[at] = true
		heap.Push(&d.order, at)
	}
}

// next returns the first date after a time, and forgets those before.
func (d *dates) next(after time.Time) (time.Time, bool) {
	for len(d.order) > 0 {
		if first := time.UnixMilli(d.order[0]); first.After(after) {
			return first, true
		}
		delete(d.at, heap.Pop(&d.order).(int64))
	}
	return time.Time{}, false
}

// milliseconds is a heap of Unix times.
type milliseconds []int64

func (m milliseconds) Len() int           { return len(m) }
func (m milliseconds) Less(i, j int) bool { return m[i] < m[j] }
func (m milliseconds) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *milliseconds) Push(x any)        { *m = append(*m, x.(int64)) }
func (m *milliseconds) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// NextDate returns when something is due next that Advance does not skip, and false if nothing is.
func (c *Clock) NextDate() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dates.next(c.now())
}

// UntilDue returns how long a controller has to wait from now on for a time at which it has to do something, and makes Advance stop
// there. It is more than 0, so that the controller does come back. What a controller only looks at now and then needs no date.
func UntilDue(clk clock.PassiveClock, at time.Time) time.Duration {
	if c, ok := clk.(*Clock); ok {
		c.mu.Lock()
		c.dates.add(at)
		c.mu.Unlock()
	}
	return max(1, at.Sub(clk.Now()))
}

// At returns when something happened for the landscape of a clock that happened at a real time.
func At(clk clock.PassiveClock, real time.Time) time.Time {
	if c, ok := clk.(interface{ At(time.Time) time.Time }); ok {
		return c.At(real)
	}
	return real
}

// Real returns the time of clients that do not know the clock, by which certificates and tokens are issued.
func Real(clk clock.PassiveClock) time.Time {
	if _, ok := clk.(interface{ At(time.Time) time.Time }); ok {
		return time.Now()
	}
	return clk.Now()
}

// Lived returns how long ago a time of the landscape of a clock was, without what was skipped.
func Lived(clk clock.PassiveClock, since time.Time) time.Duration {
	if c, ok := clk.(interface{ Lived(time.Time) time.Duration }); ok {
		return c.Lived(since)
	}
	return clk.Since(since)
}
