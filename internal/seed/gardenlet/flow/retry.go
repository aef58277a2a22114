package flow

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
)

// Retry configures the exponential backoff of a task: the first delay is First, later ones are doubled up to Most, and there
// are no retries after Until has passed since the start.
type Retry struct{ First, MaxDelay, Timeout time.Duration }

// do calls a function until it succeeds, returns Pending or a final error, or the time is over.
func (r Retry) do(ctx context.Context, clk clock.WithTicker, fn func(context.Context) error) error {
	if r.Timeout <= 0 {
		return fn(ctx)
	}
	end, wait := clk.Now().Add(r.Timeout), r.First
	for {
		err := fn(ctx)
		var waits pending
		if err == nil || errors.As(err, &waits) || Final(err) || clk.Now().Add(wait).After(end) {
			return err
		}
		timer := clk.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return err // it says more than the end of the context, which Run reports
		}
		if wait = max(2*wait, time.Millisecond); r.MaxDelay > 0 {
			wait = min(wait, r.MaxDelay)
		}
	}
}
