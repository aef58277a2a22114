package shootplane

import (
	"time"

	"k8s.io/utils/clock"
)

// pause is an exponential backoff between attempts. It doubles with each failure.
type pause struct {
	clock  clock.WithTicker
	length time.Duration
	until  time.Time
	began  time.Time
}

// over reports whether the next attempt is allowed.
func (p *pause) over() bool { return !p.clock.Now().Before(p.until) }

// more starts a pause after a failed attempt.
func (p *pause) more() {
	p.length = min(max(2*p.length, retryFirst), retryLast)
	p.until = p.clock.Now().Add(p.length)
}

// reset ends the pause, and makes the next one short again.
func (p *pause) reset() { p.length, p.until = 0, time.Time{} }

// begin records a successful attempt; since returns the time since then.
func (p *pause) begin()               { p.began = p.clock.Now() }
func (p *pause) since() time.Duration { return p.clock.Since(p.began) }

// left returns a channel that receives a value when the pause is over; nil if there is no pause.
func (p *pause) left() <-chan time.Time {
	if p.over() {
		return nil
	}
	return p.clock.After(p.until.Sub(p.clock.Now()))
}
