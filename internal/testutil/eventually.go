package testutil

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Timeout is for conditions that hold within moments unless something is broken: long enough for a busy machine.
const Timeout = time.Minute

// maxPause is the longest pause between two checks.
const maxPause = 500 * time.Millisecond

// Eventually polls until check returns nil. If it does not within timeout, the test fails with the last error of check. A
// check that takes long, such as one that runs a program, takes at most a fifth of the time of what it waits for.
func Eventually(t testing.TB, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout) // also in a function of t.Cleanup
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

// EventuallyTrue is Eventually for a condition that has no error to tell: what says what is expected.
func EventuallyTrue(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Eventually(t, Timeout, func(context.Context) error {
		if condition() {
			return nil
		}
		return errors.New("not yet: " + what)
	})
}
