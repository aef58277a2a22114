package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// LimitError says which limit ended a run.
type LimitError struct {
	// Limit is what there was too much of: "time", "output", "memory", "string", "fields", "depth" or "steps".
	Limit string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("ended: the session's limit of %s is used up", e.Limit)
}

// statusKilled is the exit status of a run that was ended.
const statusKilled = 137

func (l Limits) withDefaults() Limits {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	defInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if l.Time == 0 {
		l.Time = 10 * time.Minute
	}
	def(&l.Output, 16<<20)
	def(&l.Memory, 64<<20)
	def(&l.Steps, 20_000_000)
	defInt(&l.String, 1<<20)
	defInt(&l.Fields, 32768)
	defInt(&l.Processes, 32)
	defInt(&l.Depth, 1000)
	defInt(&l.Script, 1<<20)
	return l
}

// Budget is memory that sessions have together, beside the limit that each of them has.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// take takes bytes (or, if negative, gives them back), and says whether there are as many.
func (b *Budget) take(bytes int64) bool {
	return b == nil || b.used.Add(bytes) <= b.limit || bytes <= 0
}

// run is what all shells of one Run share: what was used of the limits, and how all of it is ended.
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
	cause  error
	cancel context.CancelFunc // of everything
}

func newRun(o Options) *run {
	r := &run{limits: o.Limits, budget: o.Budget}
	r.pids.Store(1000)
	return r
}

// wait waits until nothing of the run is left, and gives its memory back.
func (r *run) wait() {
	r.group.Wait()
	r.budget.take(-r.memory.Swap(0))
}

// kill ends everything that runs.
func (r *run) kill(limit string) error {
	err := &LimitError{Limit: limit}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = err
	}
	r.cancel()
	return err
}

// begin starts counting anew, and returns the context of what runs now. end must be called.
func (r *run) begin(ctx context.Context, timer <-chan time.Time) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	r.cause, r.cancel = nil, cancel
	r.mu.Unlock()
	r.steps.Store(0)
	r.output.Store(0)
	var watcher sync.WaitGroup
	if timer != nil {
		watcher.Go(func() {
			select {
			case <-timer:
				_ = r.kill("time")
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() {
		cancel()
		watcher.Wait()
	}
}

// ended is why everything was ended, or nil.
func (r *run) ended(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return r.cause
	}
	return ctx.Err()
}

// grow counts bytes that are kept (or, if negative, no longer).
func (r *run) grow(bytes int64) error {
	enough := r.budget.take(bytes)
	if used := r.memory.Add(bytes); bytes > 0 && (used > r.limits.Memory || !enough) {
		return r.kill("memory")
	}
	return nil
}

var errNoFork = errors.New("fork: Resource temporarily unavailable")

// spawn starts a goroutine of the run, if there may be one more.
func (r *run) spawn(fn func()) error {
	if r.running.Add(1) > int64(r.limits.Processes) {
		r.running.Add(-1)
		return errNoFork
	}
	r.group.Go(func() {
		defer r.running.Add(-1)
		fn()
	})
	return nil
}
