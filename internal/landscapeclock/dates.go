package landscapeclock

import (
	"container/heap"
	"time"

	"k8s.io/utils/clock"
)

// dates are the times at which something is due that Advance has to let happen before it goes on, in whole seconds.
type dates struct {
	order seconds
	at    map[int64]bool
}

func (d *dates) add(t time.Time) {
	at := t.Unix() + 1
	if !d.at[at] {
		d.at[at] = true
		heap.Push(&d.order, at)
	}
}

// next returns the first date after a time, and forgets those before.
func (d *dates) next(after time.Time) (time.Time, bool) {
	for len(d.order) > 0 {
		if first := time.Unix(d.order[0], 0); first.After(after) {
			return first, true
		}
		delete(d.at, heap.Pop(&d.order).(int64))
	}
	return time.Time{}, false
}

// seconds is a heap of Unix times.
type seconds []int64

func (s seconds) Len() int           { return len(s) }
func (s seconds) Less(i, j int) bool { return s[i] < s[j] }
func (s seconds) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *seconds) Push(x any)        { *s = append(*s, x.(int64)) }
func (s *seconds) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// NextDate returns when something is due next that Advance does not skip, and false if nothing is.
func (c *Clock) NextDate() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dates.next(c.now())
}

// Due makes Advance stop at a time at which a controller has to do something, if the clock is a landscape's. What a controller only
// looks at now and then needs no date.
func Due(clk clock.PassiveClock, at time.Time) {
	if c, ok := clk.(*Clock); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dates.add(at)
	}
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
