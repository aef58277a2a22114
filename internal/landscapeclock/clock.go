// Package landscapeclock is the clock of a landscape: the real one until it is moved ahead, stopped or made faster. Everything of a
// landscape goes by it, except for what Kubernetes' own code takes from the real clock: At says when that was for the landscape. It
// imports nothing of the project.
package landscapeclock

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// MaxAdvance is how far the clock may be ahead of the real one.
	MaxAdvance = 100 * 365 * 24 * time.Hour
	// MaxRate is how many seconds may pass in a real one.
	MaxRate = 10_000
)

// Clock is the clock of a landscape.
type Clock struct {
	save     func(History) error
	activity activity

	mu      sync.Mutex
	history History
	waiters waiters
	dates   dates
	arrival time.Time // of an advance
	timer   *time.Timer
}

var _ clock.WithTicker = &Clock{}

// New returns the clock with a history, which goes on where it ended. Save, if set, keeps the history before a change of it takes
// effect.
func New(history History, save func(History) error) *Clock {
	if len(history) == 0 {
		now := time.Now().Round(0)
		history = History{{Real: now, Time: now, Rate: 1}}
	}
	if save == nil {
		save = func(History) error { return nil }
	}
	c := &Clock{history: history, save: save, dates: dates{at: map[int64]bool{}}}
	c.timer = time.AfterFunc(math.MaxInt64, c.fire)
	return c
}

// Now returns the time of the landscape.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return c.last().at(time.Now()) }

func (c *Clock) last() Segment { return c.history[len(c.history)-1] }

// Since returns how long ago a time of the landscape was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Rate returns how many seconds pass in a real one, 0 if the clock stands still.
func (c *Clock) Rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last().Rate
}

// Offset returns how far the clock is ahead of the real one.
func (c *Clock) Offset() time.Duration {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last().at(now).Sub(now)
}

// At returns when something happened for the landscape that happened at a real time. A time after the real one is the landscape's. Of a
// time in whole seconds, as Kubernetes and certificates have them, the end of the second counts: the clock may have moved in it.
func (c *Clock) At(real time.Time) time.Time {
	now := time.Now()
	if real.After(now) {
		return real
	}
	moment := real
	if real.Nanosecond() == 0 {
		moment = real.Add(min(time.Second-1, now.Sub(real)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.history.at(moment).Add(real.Sub(moment))
}

// Lived returns how long ago a time of the landscape was without the time that was skipped since: how long something that has to be
// repeated all the time was not.
func (c *Clock) Lived(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Sub(since) - c.history.skippedSince(since)
}

var (
	// ErrBack says that the clock would go back.
	ErrBack = errors.New("the clock of a landscape does not go back")
	errFar  = fmt.Errorf("the clock of a landscape is at most %d years ahead of the real one", int(MaxAdvance.Hours()/24/365))
)

// Set moves the clock ahead at once. What becomes due happens afterwards, in no order.
func (c *Clock) Set(to time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.Before(c.now()) {
		return ErrBack
	}
	if time.Until(to) > MaxAdvance {
		return errFar
	}
	return c.change(to, c.last().Rate)
}

// SetRate makes a number of seconds pass in a real one; 0 stops the clock.
func (c *Clock) SetRate(rate float64) error {
	if !(rate >= 0 && rate <= MaxRate) {
		return fmt.Errorf("a rate of %g: between 0 and %d seconds in a real one", rate, MaxRate)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.change(c.now(), rate)
}

func (c *Clock) change(to time.Time, rate float64) error {
	history := c.history.with(Segment{Real: time.Now().Round(0), Time: to.Round(0), Rate: rate})
	if err := c.save(history); err != nil {
		return fmt.Errorf("keeping the time of the landscape: %w", err)
	}
	c.history = history
	c.fireDue()
	return nil
}

// After returns the channel of a timer.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Tick returns the channel of a ticker that never stops.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// Sleep returns after a time of the landscape.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// NewTimer returns a timer.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, waiter: &waiter{index: -1, fired: make(chan time.Time, 1)}}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.start(d)
	return t
}

// NewTicker returns a ticker. Of what it misses while the clock is moved, it reports one.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	if d <= 0 {
		panic("a ticker needs a positive period")
	}
	t := &timer{clock: c, waiter: &waiter{index: -1, period: d, fired: make(chan time.Time, 1)}}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.start(d)
	return ticker{t}
}

// timer is a timer or a ticker of a Clock, whose lock is held for its fields.
type timer struct {
	clock  *Clock
	waiter *waiter
}

func (t *timer) start(d time.Duration) {
	t.waiter.at = t.clock.now().Add(d)
	heap.Push(&t.clock.waiters, t.waiter)
	t.clock.fireDue()
}

func (t *timer) stop() (active bool) {
	if active = t.waiter.index >= 0; active {
		heap.Remove(&t.clock.waiters, t.waiter.index)
	}
	select { // as with the timers of package time, nothing old is received after Stop or Reset
	case <-t.waiter.fired:
	default:
	}
	return active
}

// C returns the channel that receives the time.
func (t *timer) C() <-chan time.Time { return t.waiter.fired }

// Stop reports whether the timer was active.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

// Reset starts the timer again, and reports whether it was active.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	active := t.stop()
	t.start(d)
	return active
}

type ticker struct{ *timer }

func (t ticker) Stop() { t.timer.Stop() }

func (c *Clock) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fireDue()
}

// fireDue fires what is due, in its order, and sets the real timer for what is due next.
func (c *Clock) fireDue() {
	now := c.now()
	for len(c.waiters) > 0 && !c.waiters[0].at.After(now) {
		w := c.waiters[0]
		select {
		case w.fired <- now:
		default:
		}
		if w.period == 0 {
			heap.Pop(&c.waiters)
			continue
		}
		w.at = w.at.Add((now.Sub(w.at)/w.period + 1) * w.period)
		heap.Fix(&c.waiters, 0)
	}
	if len(c.waiters) == 0 || c.last().Rate == 0 {
		c.timer.Stop()
		return
	}
	// A little later than due: the real timer must not fire before the time has come after it was divided by the rate.
	c.timer.Reset(time.Duration(float64(c.waiters[0].at.Sub(now))/c.last().Rate) + 1)
}

type waiter struct {
	at     time.Time
	period time.Duration // of a ticker
	fired  chan time.Time
	index  int
}

// waiters is a heap, the first one in front.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}
func (w *waiters) Push(x any) {
	one := x.(*waiter)
	one.index = len(*w)
	*w = append(*w, one)
}
func (w *waiters) Pop() any {
	last := len(*w) - 1
	one := (*w)[last]
	(*w)[last] = nil
	*w, one.index = (*w)[:last], -1
	return one
}
