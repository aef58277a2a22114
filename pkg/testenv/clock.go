package testenv

import (
	"sync"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// clockPeriod is how exact a Clock is.
const clockPeriod = 10 * time.Millisecond

// Clock is the clock of a landscape. It goes with the real clock, and is ahead of it once Advance was called.
type Clock struct {
	*clocktesting.FakeClock

	mu    sync.Mutex
	ahead time.Duration
	stop  chan struct{}
	ended sync.WaitGroup
}

// WithClock gives the landscape a clock of its own, which Env.Clock returns: the test advances it, instead of waiting for Bastions
// to expire, for maintenance windows, or for hibernation schedules. Certificates that are made after an advance are not valid yet
// for clients with the real clock: a Shoot that is created or woken then is of no use.
func WithClock() Option {
	return func(o *options) {
		o.ownClock = true
		o.forStart = append(o.forStart, "WithClock")
	}
}

// Clock returns the clock of WithClock, nil without it.
func (e *Env) Clock() *Clock { return e.clock }

func startClock() *Clock {
	c := &Clock{FakeClock: clocktesting.NewFakeClock(time.Now()), stop: make(chan struct{})}
	c.ended.Go(func() {
		ticker := time.NewTicker(clockPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.follow(0)
			case <-c.stop:
				return
			}
		}
	})
	return c
}

// Advance moves the clock ahead. What is due by then happens soon, in no order.
func (c *Clock) Advance(d time.Duration) { c.follow(max(d, 0)) }

// follow sets the clock to the real time, and so much more than before. It never goes back.
func (c *Clock) follow(more time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += more
	if now := time.Now().Add(c.ahead); now.After(c.Now()) {
		c.SetTime(now)
	}
}

func (c *Clock) end() {
	close(c.stop)
	c.ended.Wait()
}
