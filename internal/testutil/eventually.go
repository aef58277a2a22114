package testutil

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Timeout is for conditions that hold within moments unless something is broken, also on a busy machine.
const Timeout = time.Minute

// maxPause is the longest pause between two checks.
const maxPause = 500 * time.Millisecond

// Eventually polls until check returns nil. If that takes longer than timeout, the test fails with the last error of
// check. The pause after a check is at least four times as long as the check, up to maxPause, so that slow checks,
// such as those that run a program, do not slow down what they wait for.
func Eventually(t testing.TB, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout) // t.Context is canceled in functions of t.Cleanup
	defer cancel()
	var last error
	for interval := time.Millisecond; ; interval = min(2*interval, 20*time.Millisecond) {
		began := time.Now()
		err := check(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil { // an error after the deadline is likely to be the deadline's own
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", timeout, last)
		case <-time.After(min(max(interval, 4*time.Since(began)), maxPause)):
		}
	}
}

// EventuallyTrue is Eventually for a condition without an error: what tells what is expected.
func EventuallyTrue(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Eventually(t, Timeout, func(context.Context) error {
		if condition() {
			return nil
		}
		return errors.New("not yet: " + what)
	})
}
