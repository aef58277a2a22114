package shootplane

import (
	"time"

	"k8s.io/utils/clock"
)

// pause is the time between attempts. It doubles with each one that fails.
type pause struct {
	clock  clock.WithTicker
	length time.Duration
	until  time.Time
	began  time.Time
}

// over says whether the next attempt may be made.
func (p *pause) over() bool { return !p.clock.Now().Before(p.until) }

// more begins a pause.
func (p *pause) more() {
	p.length = min(max(2*p.length, retryFirst), retryLast)
	p.until = p.clock.Now().Add(p.length)
}

// reset ends it, and the next one is short again.
func (p *pause) reset() { p.length, p.until = 0, time.Time{} }

// begin notes that an attempt succeeded, since says how long ago that was.
func (p *pause) begin()               { p.began = p.clock.Now() }
func (p *pause) since() time.Duration { return p.clock.Since(p.began) }

// left is told when the pause is over; never if there is none.
func (p *pause) left() <-chan time.Time {
	if p.over() {
		return nil
	}
	return p.clock.After(p.until.Sub(p.clock.Now()))
}
