package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// LimitError means that a limit ended a run.
type LimitError struct {
	// Limit is the name of the limit: "time", "output", "memory", "string", "fields", "depth" or "steps".
	Limit string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("ended: the session's limit of %s is used up", e.Limit)
}

// statusKilled is the exit status of a run that was ended.
const statusKilled = 137

// Limits of every run, in addition to Limits.
const (
	maxString    = 1 << 20 // bytes of a variable, a word or a line
	maxInput     = 8 << 20 // bytes that a program keeps of its input
	maxFields    = 32768   // words that one expansion gives
	maxProcesses = 32      // subshells and jobs at a time
	maxDepth     = 1000    // nesting of functions, subshells and expressions
	maxScript    = 1 << 20 // bytes of a script
)

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, 10*time.Minute)
	l.Output = cmp.Or(max(l.Output, 0), 16<<20)
	l.Memory = cmp.Or(max(l.Memory, 0), 64<<20)
	l.Steps = cmp.Or(max(l.Steps, 0), 20_000_000)
	return l
}

// Budget is memory that sessions share. Each session has its own limit in addition.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Take takes bytes or, if negative, gives them back. It reports whether there were enough; the bytes
// are taken in any case.
func (b *Budget) Take(bytes int64) bool {
	return b == nil || b.used.Add(bytes) <= b.limit || bytes <= 0
}

// run is the state that all shells of one Run share: how much of the limits is used, and how to end all shells.
type run struct {
	limits  Limits
	budget  *Budget // nil if there is none
	steps   atomic.Int64
	memory  atomic.Int64
	output  atomic.Int64
	running atomic.Int64
	pids    atomic.Int64
	group   sync.WaitGroup // of all goroutines but the one that reads the caller's stdin

	mu     sync.Mutex
	cancel context.CancelCauseFunc // of everything
}

func newRun(o Options) *run {
	r := &run{limits: o.Limits, budget: o.Budget, cancel: func(error) {}}
	r.pids.Store(1000)
	return r
}

// wait waits until nothing of the run is left, and gives its memory back.
func (r *run) wait() {
	r.group.Wait()
	r.budget.Take(-r.memory.Swap(0))
}

func (r *run) kill(limit string) error {
	err := &LimitError{Limit: limit}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(err)
	return err
}

// begin resets the counters, and returns the context of what runs now. The cause of the context says why it ended. The
// caller must call end.
func (s *Session) begin(ctx context.Context, r *run) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
	r.steps.Store(0)
	r.output.Store(0)
	wait := s.atTimeLimit(ctx, func() { _ = r.kill("time") })
	return ctx, func() {
		cancel(nil)
		wait()
	}
}

// atTimeLimit calls a function after the time limit of a line, unless ctx is done before. wait waits for its goroutine.
func (s *Session) atTimeLimit(ctx context.Context, fn func()) (wait func()) {
	var watcher sync.WaitGroup
	if s.o.Limits.Time > 0 {
		timer := s.o.Clock.NewTimer(s.o.Limits.Time)
		watcher.Go(func() {
			defer timer.Stop()
			select {
			case <-timer.C():
				fn()
			case <-ctx.Done():
			}
		})
	}
	return watcher.Wait
}

// grow counts bytes that are kept or, if negative, released.
func (r *run) grow(bytes int64) error {
	enough := r.budget.Take(bytes)
	if used := r.memory.Add(bytes); bytes > 0 && (used > r.limits.Memory || !enough) {
		return r.kill("memory")
	}
	return nil
}

var errNoFork = errors.New("fork: Resource temporarily unavailable")

// spawn starts a goroutine of the run, unless too many are running.
func (r *run) spawn(fn func()) error {
	if r.running.Add(1) > maxProcesses {
		r.running.Add(-1)
		return errNoFork
	}
	r.group.Go(func() {
		defer r.running.Add(-1)
		fn()
	})
	return nil
}
