package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Progress is the progress of a flow.
type Progress struct {
	// Flow is the name of the flow.
	Flow string
	// Done and All count the tasks that are done and all tasks, without skipped ones.
	Done, All int
	// Running are the names of the running tasks, and Waiting of those that returned Pending, in the flow's order.
	Running, Waiting []string
	// Stuck are the errors of those that returned Stuck.
	Stuck []string
}

// Percent returns how much is done. It is 100 only if everything is.
func (p Progress) Percent() int32 {
	if p.All == 0 {
		return 100
	}
	return int32(p.Done * 100 / p.All) // both are small
}

// String returns the progress for users.
func (p Progress) String() string {
	at := slices.Concat(p.Running, p.Waiting)
	switch {
	case len(p.Stuck) > 0:
		return strings.Join(at, ", ") + ": " + strings.Join(p.Stuck, "; ")
	case len(at) > 0:
		return strings.Join(at, ", ")
	case p.Done == p.All:
		return p.Flow + " finished"
	case p.Done == 0:
		return "Starting " + p.Flow
	}
	return p.Flow
}

// Options are the options of Run.
type Options struct {
	Clock clock.WithTicker
	// Report, if not nil, is called with the progress: first after a Period, then at most once per Period, and only if the
	// progress has changed. Neither the start nor the result of the flow is reported.
	Report func(context.Context, Progress)
	Period time.Duration
}

// run is the state of a running flow. Only the goroutine of Run accesses it.
type run struct {
	*Flow
	Options
	state map[string]state
	ended chan outcome
	errs  Errors
	stuck map[string]string // by task
}

type state int

const (
	todo state = iota
	running
	waiting
	failed
	done
)

type outcome struct {
	task string
	err  error
}

// Run executes the tasks, and returns when no more can be started. The error contains Errors if tasks have failed, and the
// cause if the context has ended. Progress.Waiting has the tasks that returned Pending, which is no error. If there is
// neither an error nor a waiting task, everything is done.
func (f *Flow) Run(ctx context.Context, o Options) (Progress, error) {
	r := &run{Flow: f, Options: o, state: map[string]state{}, stuck: map[string]string{}, ended: make(chan outcome, len(f.tasks))}
	r.loop(ctx)
	slices.SortStableFunc(r.errs, func(a, b *TaskError) int { return r.index(a.Task) - r.index(b.Task) })
	var err error
	if len(r.errs) > 0 {
		err = r.errs
	}
	if cause := context.Cause(ctx); cause != nil && (err != nil || r.progress().Done < r.progress().All) {
		err = errors.Join(fmt.Errorf("%s was interrupted: %w", f.name, cause), err)
	}
	return r.progress(), err
}

// loop starts tasks that are ready, waits for running ones, and reports the progress in between.
func (r *run) loop(ctx context.Context) {
	var timer clock.Timer
	var due <-chan time.Time
	rest := func() {
		if r.Report != nil && r.Period > 0 {
			timer = r.Clock.NewTimer(r.Period)
			due = timer.C()
		}
	}
	rest()
	changed := true // since the last report
	for r.start(ctx); len(r.progress().Running) > 0; {
		if changed && due == nil && r.Report != nil {
			r.Report(ctx, r.progress())
			changed = false
			rest()
		}
		select {
		case outcome := <-r.ended:
			r.end(outcome)
			r.start(ctx)
			changed = true
		case <-due:
			due = nil
		}
	}
	if timer != nil {
		timer.Stop()
	}
}

// start starts tasks whose predecessors are done. Skipped tasks are done at once, which may make others ready.
func (r *run) start(ctx context.Context) {
	for again := true; again; {
		again = false
		for _, task := range r.tasks {
			ready := r.state[task.Name] == todo && !slices.ContainsFunc(task.After, func(name string) bool { return r.state[name] != done })
			switch {
			case !ready:
			case task.Skip:
				r.state[task.Name], again = done, true
			case ctx.Err() == nil:
				r.state[task.Name] = running
				go func() { r.ended <- outcome{task.Name, guarded(ctx, task.Do)} }()
			}
		}
	}
}

func (r *run) end(o outcome) {
	switch {
	case o.err == nil:
		r.state[o.task] = done
	case IsPending(o.err):
		r.state[o.task] = waiting
		if isStuck(o.err) {
			r.stuck[o.task] = o.err.Error()
		}
	default:
		r.state[o.task] = failed
		r.errs = append(r.errs, &TaskError{Task: o.task, Err: o.err})
	}
}

func (r *run) progress() Progress {
	p := Progress{Flow: r.name}
	for _, task := range r.tasks {
		if task.Skip {
			continue
		}
		p.All++
		switch r.state[task.Name] {
		case done:
			p.Done++
		case running:
			p.Running = append(p.Running, task.Name)
		case waiting:
			p.Waiting = append(p.Waiting, task.Name)
			if why := r.stuck[task.Name]; why != "" {
				p.Stuck = append(p.Stuck, why)
			}
		}
	}
	return p
}

func (r *run) index(name string) int {
	return slices.IndexFunc(r.tasks, func(task Task) bool { return task.Name == name })
}

// guarded turns a panic into an error, because a panic would end the whole process.
func guarded(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("it panicked: %v\n%s", problem, debug.Stack())
		}
	}()
	return do(ctx)
}
