package host

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"
)

// Sleep waits on a clock. It says why not if the context has ended before.
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

// Backoff grows from First to Max, twice as long each time, with a jitter of half of it: nodes that fail together do not
// come again together.
type Backoff struct {
	First, Max time.Duration
	next       time.Duration
}

// Next is how long to wait now.
func (b *Backoff) Next() time.Duration {
	d := min(max(b.next, b.First), b.Max)
	b.next = 2 * d
	return d/2 + rand.N(d/2+1)
}

// Reset begins anew: it has gone well.
func (b *Backoff) Reset() { b.next = 0 }
