package testutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a testing.TB that records a failure and does not fail the test.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(r)
}

// failureOf calls run, and returns the message if run fails its test.
func failureOf(t *testing.T, run func(testing.TB)) string {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		run(r)
	}()
	return r.failure
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, calls := time.Now(), 0
		Eventually(t, time.Minute, func(context.Context) error {
			if calls++; time.Since(begin) < time.Second {
				return errors.New("too early")
			}
			return nil
		})
		if took := time.Since(begin); took > 1020*time.Millisecond || calls > 60 {
			t.Errorf("it returned after %s and %d calls", took, calls)
		}
		failure := failureOf(t, func(t testing.TB) {
			Eventually(t, time.Minute, func(ctx context.Context) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("after %s", time.Since(begin).Round(time.Hour))
			})
		})
		if failure != "after 1m0s: after 0s" {
			t.Errorf("it fails with %q", failure)
		}
		if failure := failureOf(t, func(t testing.TB) { EventuallyTrue(t, "it rains", func() bool { return false }) }); !strings.Contains(
			failure, "not yet: it rains") {
			t.Errorf("it fails with %q", failure)
		}
	})
}

func TestEventuallyPauses(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		calls int
	}{
		{takes: 100 * time.Millisecond, calls: 12}, // one in half a second
		{takes: 500 * time.Millisecond, calls: 6},  // one in a second
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			failureOf(t, func(t testing.TB) {
				Eventually(t, 5900*time.Millisecond, func(context.Context) error {
					calls++
					time.Sleep(c.takes)
					return errors.New("not yet")
				})
			})
			if calls != c.calls {
				t.Errorf("%d calls of a check that takes %s, want %d", calls, c.takes, c.calls)
			}
		})
	}
}

func TestEventuallyInCleanup(t *testing.T) {
	calls := 0
	t.Run("test", func(t *testing.T) {
		t.Cleanup(func() { EventuallyTrue(t, "three calls", func() bool { calls++; return calls == 3 }) })
	})
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, late := make(chan struct{}), make(chan struct{})
		go func() { <-end }() // runs before and after
		failure := failureOf(t, func(t testing.TB) {
			allEnded := Goroutines(t)
			go func() { time.Sleep(time.Millisecond) }()
			allEnded(time.Second)
			go func() { <-late }()
			allEnded(time.Second)
		})
		if !strings.Contains(failure, "goroutines are left") || strings.Count(failure, "created by") != 1 {
			t.Errorf("it fails with %q", failure)
		}
		close(end)
		close(late)
	})
}

func TestGoroutineGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		failure := failureOf(t, func(t testing.TB) {
			below := GoroutineGrowth(t)
			for range 2 {
				go func() { <-end }()
			}
			for range 3 {
				go func() { time.Sleep(time.Millisecond) }()
			}
			below(3)
			for range 3 {
				go func() { <-end }()
			}
			below(3)
		})
		if !strings.Contains(failure, "3 goroutines more") || strings.Count(failure, "created by") != 1 {
			t.Errorf("it fails with %q", failure)
		}
		close(end)
	})
}

func TestOwnProcess(t *testing.T) {
	parent := os.Getppid()
	if !OwnProcess(t) {
		return
	}
	if os.Getenv(ownProcess) != "TestOwnProcess" || parent <= 1 {
		t.Errorf("%q, parent %d", os.Getenv(ownProcess), parent)
	}
}

func TestSeed(t *testing.T) {
	t.Setenv("GARDENLITE_SEED", "")
	t.Setenv("GARDENLITE_SOAK", "")
	if first, second := Seed(t), Seed(t); first != second || Soaking() {
		t.Error("the seeds of two tests are different")
	}
	t.Setenv("GARDENLITE_SOAK", "1")
	if first, second := Seed(t), Seed(t); first == second || !Soaking() {
		t.Error("the seeds of two tests in the soak are the same")
	}
	t.Setenv("GARDENLITE_SEED", "7")
	if Seed(t) != 7 {
		t.Error("it does not repeat a seed")
	}
}
