package flow

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
)

// Retry is how a task is tried again: after First, then after twice as long each time, Most at the longest, until Until
// has passed since it began.
type Retry struct{ First, Most, Until time.Duration }

// do calls a function until it succeeds, has nothing to do but to wait, fails for good, or there is no time left.
func (r Retry) do(ctx context.Context, clk clock.WithTicker, fn func(context.Context) error) error {
	if r.Until <= 0 {
		return fn(ctx)
	}
	end, wait := clk.Now().Add(r.Until), r.First
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
			return err // it says more than that the context has ended, which Run says
		}
		if wait = max(2*wait, time.Millisecond); r.Most > 0 {
			wait = min(wait, r.Most)
		}
	}
}
