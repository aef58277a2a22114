package landscapeclock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxStep is how far Advance goes at once when nothing is due: what is looked at now and then is not late by more. Certificates are
	// renewed when they are valid for 73 days only.
	maxStep = 30 * 24 * time.Hour
	// quietFor is how long nothing must work before a step has ended, idlePoll how often that is looked at.
	quietFor, idlePoll = 30 * time.Millisecond, 5 * time.Millisecond
	// firstSettle is how long Advance waits before the first step for what goes on.
	firstSettle = 10 * time.Second
)

// activity is what works by the clock.
type activity struct {
	working atomic.Int64
	mu      sync.Mutex
	queues  map[Queue]bool
}

// Queue is a queue of a controller.
type Queue interface{ Len() int }

// Watch makes a step of Advance wait until a queue is empty, until remove is called. For a clock that is no landscape's, it does nothing.
func Watch(clk clock.PassiveClock, q Queue) (remove func()) {
	c, ok := clk.(*Clock)
	if !ok {
		return func() {}
	}
	a := &c.activity
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queues == nil {
		a.queues = map[Queue]bool{}
	}
	a.queues[q] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.queues, q)
	}
}

// Begin makes a step of Advance wait until End is called. For a clock that is no landscape's, both do nothing.
func Begin(clk clock.PassiveClock) { work(clk, 1) }

// End is called once for each Begin.
func End(clk clock.PassiveClock) { work(clk, -1) }

func work(clk clock.PassiveClock, change int64) {
	if c, ok := clk.(*Clock); ok {
		c.activity.working.Add(change)
	}
}

func (a *activity) idle() bool {
	if a.working.Load() > 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for q := range a.queues {
		if q.Len() > 0 {
			return false
		}
	}
	return true
}

// waitIdle waits until nothing has worked for a while.
func (a *activity) waitIdle(ctx context.Context) error {
	poll := time.NewTicker(idlePoll)
	defer poll.Stop()
	for quiet := time.Duration(0); quiet < quietFor; quiet += idlePoll {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
		if !a.idle() {
			quiet = 0
		}
	}
	return nil
}

// Advance moves the clock ahead to a time in steps that end at what is due next, of at most 30 days. After each step it waits until
// nothing works any more and settled returns nil, and calls passed. Before the first step it waits too, so that what is due is known and
// what goes on ends in its time, but only for a moment for settled: what goes on may wait for a later time.
func (c *Clock) Advance(ctx context.Context, to time.Time, settled func(context.Context) error, passed func(time.Time)) error {
	c.setArrival(to)
	defer c.setArrival(time.Time{})
	if err := c.activity.waitIdle(ctx); err != nil {
		return err
	}
	moment, cancel := context.WithTimeout(ctx, firstSettle)
	defer cancel()
	if err := settled(moment); err != nil && (moment.Err() == nil || ctx.Err() != nil) {
		return err
	}
	for {
		now := c.Now()
		if !now.Before(to) {
			return nil
		}
		step := now.Add(maxStep)
		if date, ok := c.NextDate(); ok && date.Before(step) {
			step = date
		}
		if step.After(to) {
			step = to
		}
		if err := c.Set(step); err != nil {
			return err
		}
		if err := c.activity.waitIdle(ctx); err != nil {
			return err
		}
		if err := settled(ctx); err != nil {
			return err
		}
		passed(step)
	}
}

func (c *Clock) setArrival(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrival = to
}

// UntilArrival returns how far an advance of the clock still has to go, and 0 if there is none or the clock is no landscape's. What a
// controller only looks at now and then may wait for it.
func UntilArrival(clk clock.PassiveClock) time.Duration {
	c, ok := clk.(*Clock)
	if !ok {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.arrival.Sub(c.now()))
}
