package shell

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// job is what runs in the background.
type job struct {
	id     int
	pid    int64
	text   string
	cancel context.CancelFunc
	done   chan struct{}
	status int // valid when done is closed
}

func (sh *shell) background(st *syntax.Stmt) {
	c := sh.fork()
	ctx, cancel := context.WithCancel(sh.base)
	c.ctx, c.base = ctx, ctx
	c.replace(0, textFile(""))
	j := &job{id: len(sh.jobs) + 1, pid: c.pid, cancel: cancel, done: make(chan struct{}), text: sh.sourceOf(st)}
	if err := sh.r.spawn(func() {
		defer close(j.done)
		defer cancel()
		if sh.interactive {
			defer sh.s.limitJob(ctx, cancel)()
		}
		c.runForked(st)
		j.status = c.status
		if ctx.Err() != nil {
			j.status = 143
		}
	}); err != nil {
		cancel()
		c.end()
		sh.status = 254
		sh.complain(err)
		return
	}
	sh.jobs = append(slices.DeleteFunc(sh.jobs, func(old *job) bool { return len(sh.jobs) > 256 && old.ended() }), j)
	sh.lastJob = strconv.FormatInt(j.pid, 10)
	sh.status = 0
	if sh.interactive {
		_, _ = fmt.Fprintf(sh.stream(2), "[%d] %d\n", j.id, j.pid)
	}
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// limitJob ends a job that a line leaves in the background after the time that a line has itself. The function returned waits
// for the end of what it started.
func (s *Session) limitJob(ctx context.Context, cancel context.CancelFunc) (end func()) {
	if s.o.Limits.Time < 0 {
		return func() {}
	}
	timer := s.o.Clock.NewTimer(s.o.Limits.Time)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel()
		case <-ctx.Done():
		}
	})
	return func() {
		cancel()
		watcher.Wait()
	}
}
