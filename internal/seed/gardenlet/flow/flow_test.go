package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func nothing(context.Context) error { return nil }

func TestNew(t *testing.T) {
	for name, test := range map[string]struct {
		tasks []Task
		wrong string
	}{
		"in order":     {tasks: []Task{{Name: "b", Do: nothing, After: []string{"a"}}, {Name: "a", Do: nothing}}},
		"empty":        {},
		"no name":      {tasks: []Task{{Do: nothing}}, wrong: "no name"},
		"taken":        {tasks: []Task{{Name: "a", Do: nothing}, {Name: "a", Do: nothing}}, wrong: `task "a"`},
		"does nothing": {tasks: []Task{{Name: "a"}}, wrong: "nothing to do"},
		"unknown":      {tasks: []Task{{Name: "a", Do: nothing, After: []string{"z"}}}, wrong: `after "z"`},
		"itself":       {tasks: []Task{{Name: "a", Do: nothing, After: []string{"a"}}}, wrong: "wait for each other: a"},
		"circle": {tasks: []Task{{Name: "a", Do: nothing}, {Name: "b", Do: nothing, After: []string{"a", "c"}},
			{Name: "c", Do: nothing, After: []string{"b"}}},
			wrong: "wait for each other: b, c"},
	} {
		_, err := New("flow", test.tasks...)
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
}

// log records the executed tasks in order.
type log struct {
	sync.Mutex
	names []string
}

func (l *log) task(name string, err error, after ...string) Task {
	return Task{Name: name, After: after, Do: func(context.Context) error {
		l.Lock()
		defer l.Unlock()
		l.names = append(l.names, name)
		return err
	}}
}

func mustRun(t *testing.T, ctx context.Context, o Options, tasks ...Task) (Progress, error) {
	t.Helper()
	f, err := New("test", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	if o.Clock == nil {
		o.Clock = clocktesting.NewFakeClock(start)
	}
	return f.Run(ctx, o)
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	skipped := func(l *log, name string, after ...string) Task {
		task := l.task(name, broken, after...)
		task.Skip = true
		return task
	}
	for name, test := range map[string]struct {
		tasks   func(*log) []Task
		order   string
		percent int32
		says    string
		waiting int
		failed  []string
	}{
		"nothing": {tasks: func(*log) []Task { return nil }, percent: 100, says: "test finished"},
		"in order": {tasks: func(l *log) []Task { return []Task{l.task("c", nil, "b"), l.task("b", nil, "a"), l.task("a", nil)} },
			order: "a b c", percent: 100, says: "test finished"},
		"skips": {tasks: func(l *log) []Task { return []Task{l.task("a", nil), skipped(l, "b", "a"), l.task("c", nil, "b")} },
			order: "a c", percent: 100, says: "test finished"},
		"stops behind a failure": {tasks: func(l *log) []Task {
			return []Task{l.task("a", broken), l.task("b", nil, "a"), skipped(l, "c", "b"), l.task("d", nil, "c")}
		}, order: "a", says: "Starting test", failed: []string{"a"}},
		"goes on beside a failure": {tasks: func(l *log) []Task {
			return []Task{l.task("a", nil), l.task("b", broken, "a"), l.task("c", nil, "a"), l.task("d", nil, "c")}
		},
			order: "a b c d", percent: 75, says: "test", failed: []string{"b"}},
		"waits": {tasks: func(l *log) []Task {
			return []Task{l.task("a", nil), l.task("b", fmt.Errorf("b: %w", Pending("not yet")), "a"), l.task("c", nil, "b")}
		},
			order: "a b", percent: 33, says: "b", waiting: 1},
		"panics": {tasks: func(*log) []Task { return []Task{{Name: "a", Do: func(context.Context) error { panic("oops") }}} },
			says: "Starting test", failed: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{}
			progress, err := mustRun(t, t.Context(), Options{}, test.tasks(l)...)
			if test.failed == nil {
				if got := strings.Join(l.names, " "); got != test.order {
					t.Errorf("order %q, want %q", got, test.order)
				}
			}
			if slices.Sort(l.names); strings.Join(l.names, " ") != test.order {
				t.Errorf("did %q, want %q", l.names, test.order)
			}
			if progress.Percent() != test.percent || progress.String() != test.says || len(progress.Waiting) != test.waiting {
				t.Errorf("%d %% %q %v", progress.Percent(), progress, progress.Waiting)
			}
			var errs Errors
			if errors.As(err, &errs); len(errs) != len(test.failed) {
				t.Fatalf("errors %v, want of %v", err, test.failed)
			}
			for i, err := range errs {
				if err.Task != test.failed[i] {
					t.Errorf("task %s failed, want %s", err.Task, test.failed[i])
				}
			}
		})
	}
}

// TestAtTheSameTime checks that independent tasks run in parallel.
func TestAtTheSameTime(t *testing.T) {
	meet := make(chan struct{})
	_, err := mustRun(t, t.Context(), Options{},
		Task{Name: "a", Do: func(ctx context.Context) error { meet <- struct{}{}; return nil }},
		Task{Name: "b", Do: func(ctx context.Context) error { <-meet; return nil }})
	if err != nil {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the gardenlet stops")
	l := &log{}
	progress, err := mustRun(t, ctx, Options{},
		Task{Name: "a", Do: func(context.Context) error { cancel(why); return nil }}, l.task("b", nil, "a"))
	if !errors.Is(err, why) || len(l.names) > 0 || progress.Percent() != 50 {
		t.Errorf("%v, %v, %d %%", err, l.names, progress.Percent())
	}
	// The next run does the rest.
	if _, err := mustRun(t, t.Context(), Options{}, l.task("a", nil), l.task("b", nil, "a")); err != nil || len(l.names) != 2 {
		t.Errorf("%v, %v", err, l.names)
	}
}

// TestReport checks that progress is reported when a period is over, and not in between.
func TestReport(t *testing.T) {
	clk := clocktesting.NewFakeClock(start)
	told := make(chan Progress, 10)
	proceed := make(chan struct{})
	wait := func(context.Context) error { <-proceed; return nil }
	finished := make(chan error)
	go func() {
		_, err := mustRun(t, t.Context(), Options{Clock: clk, Period: time.Second, Report: func(_ context.Context, p Progress) { told <- p }},
			Task{Name: "a", Do: wait}, Task{Name: "b", Do: wait, After: []string{"a"}}, Task{Name: "c", Do: wait, After: []string{"b"}},
			Task{Name: "d", Do: wait, After: []string{"c"}})
		finished <- err
	}()
	proceed <- struct{}{} // the first has begun, so the timer is there
	if len(told) > 0 {
		t.Error("told before the period was over")
	}
	clk.Step(time.Second)
	if p := <-told; p.Percent() > 25 || len(p.Running) > 1 {
		t.Errorf("told %d %% %s", p.Percent(), p)
	}
	proceed <- struct{}{}
	proceed <- struct{}{}
	proceed <- struct{}{}
	if err := <-finished; err != nil || len(told) > 0 {
		t.Errorf("%v, and told %d times more", err, len(told))
	}
}
