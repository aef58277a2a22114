package host

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"
)

// Sleep waits on a clock for a duration. If the context ends before, it returns the cause.
func Sleep(ctx context.Context, clk clock.WithTicker, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// Backoff is an exponential backoff from First to Max, with a jitter of half of the delay, so that nodes that fail
// together do not retry together.
type Backoff struct {
	First, Max time.Duration
	next       time.Duration
}

// Next returns the next delay.
func (b *Backoff) Next() time.Duration {
	d := min(max(b.next, b.First), b.Max)
	b.next = 2 * d
	return d/2 + rand.N(d/2+1)
}

// Reset starts over with First. Call it after a success.
func (b *Backoff) Reset() { b.next = 0 }
