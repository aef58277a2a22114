package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
)

// The states of a unit, as systemd names them.
const (
	loadLoaded   = "loaded"
	loadNotFound = "not-found"
	loadMasked   = "masked"
	loadBad      = "bad-setting"

	activeActive       = "active"
	activeInactive     = "inactive"
	activeActivating   = "activating"
	activeDeactivating = "deactivating"
	activeFailed       = "failed"

	subRunning     = "running"
	subExited      = "exited"
	subDead        = "dead"
	subFailed      = "failed"
	subStart       = "start"
	subStop        = "stop-sigterm"
	subAutoRestart = "auto-restart"

	resultExitCode   = "exit-code"
	resultStartLimit = "start-limit-hit"
)

// unit is a loaded unit. Its fields are guarded by Units.mu.
type unit struct {
	name, path string
	load       string
	loadErr    error
	definition *definition // nil if the files must be read again

	active, sub, result string
	since               time.Time
	pid                 int
	starts              []time.Time // the times of the last starts, for the start limit
	run                 *unitRun    // nil if nothing runs
	journal             journal
}

// unitRun is a run of a unit from a start to the corresponding stop, restarts included.
type unitRun struct {
	cancel context.CancelFunc
	// ready is closed when Start may return. err is then the result of the start.
	ready chan struct{}
	err   error
	// done is closed when everything has ended.
	done chan struct{}
	// again means that the unit has asked for its own restart.
	again bool
}

// reset sets the state that a unit has after a boot.
func (one *unit) reset() {
	one.active, one.sub, one.result, one.pid, one.starts, one.definition = activeInactive, subDead, "", 0, nil, nil
}

type unitKey struct{}

// itself reports whether a call comes from the unit itself, which must not wait for its own end.
func itself(ctx context.Context, one *unit) bool { return ctx.Value(unitKey{}) == one }

// Start starts a unit, unless it runs. It returns when the unit runs, or, if its type is oneshot, when it has ended.
func (u *Units) Start(ctx context.Context, name string) error {
	u.mu.Lock()
	one, err := u.get(name)
	if err == nil {
		err = one.loadErr
	}
	if err == nil && u.base == nil {
		err = ErrDown
	}
	if err != nil {
		u.mu.Unlock()
		return fmt.Errorf("starting unit %s: %w", name, err)
	}
	run := one.run
	if run == nil && one.active != activeActive { // active without a run: a oneshot that remains
		one.starts = nil // the limit is for restarts, not for explicit starts
		run = u.launch(one)
	}
	u.mu.Unlock()
	if run == nil || itself(ctx, one) {
		return nil
	}
	select {
	case <-run.ready:
		return run.err
	case <-ctx.Done():
		return fmt.Errorf("starting unit %s: %w", name, context.Cause(ctx))
	}
}

// launch starts a run of a unit. The lock is held.
func (u *Units) launch(one *unit) *unitRun {
	ctx, cancel := context.WithCancel(context.WithValue(u.base, unitKey{}, one))
	run := &unitRun{cancel: cancel, ready: make(chan struct{}), done: make(chan struct{})}
	one.run = run
	definition := one.definition
	u.state(one, activeActivating, subStart, "")
	u.group.Go(func() {
		defer cancel()
		u.supervise(ctx, one, definition, run)
	})
	return run
}

// Stop stops a unit and waits until it has ended.
func (u *Units) Stop(ctx context.Context, name string) error {
	_, err := u.stop(ctx, name, false)
	return err
}

// Restart stops a unit, if it runs, and starts it. A unit that restarts itself is started again after it has ended.
func (u *Units) Restart(ctx context.Context, name string) error {
	asked, err := u.stop(ctx, name, true)
	if err != nil || asked {
		return err
	}
	return u.Start(ctx, name)
}

// stop stops a unit. If the call comes from the unit itself, stop does not wait, and asked is true; with again, the
// unit is started again after it has ended.
func (u *Units) stop(ctx context.Context, name string, again bool) (asked bool, err error) {
	u.mu.Lock()
	one, err := u.get(name)
	if err != nil {
		u.mu.Unlock()
		return false, fmt.Errorf("stopping unit %s: %w", name, err)
	}
	run := one.run
	if run == nil {
		u.state(one, activeInactive, subDead, "") // resets a failed unit, and a oneshot that remains
		u.mu.Unlock()
		return false, nil
	}
	u.state(one, activeDeactivating, subStop, "")
	run.again = run.again || again && itself(ctx, one)
	run.cancel()
	u.mu.Unlock()
	if itself(ctx, one) {
		return true, nil
	}
	select {
	case <-run.done:
		return false, nil
	case <-ctx.Done():
		return false, fmt.Errorf("stopping unit %s: waiting until it has ended: %w", name, context.Cause(ctx))
	}
}

// state sets the state of a unit. The lock is held.
func (u *Units) state(one *unit, active, sub, result string) {
	if one.active != active {
		one.since = u.m.cfg.Clock.Now()
	}
	one.active, one.sub, one.result = active, sub, result
}

// supervise runs a unit until it is stopped, or ends and is not to be started again.
func (u *Units) supervise(ctx context.Context, one *unit, d *definition, run *unitRun) {
	err := u.attempts(ctx, one, d, run)
	if ctx.Err() != nil && len(d.stop) > 0 {
		u.runStop(ctx, one, d)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	one.run, one.pid = nil, 0
	switch {
	case ctx.Err() != nil:
		u.state(one, activeInactive, subDead, "")
	case errors.Is(err, errStartLimit):
		u.state(one, activeFailed, subFailed, resultStartLimit)
	case err != nil:
		u.state(one, activeFailed, subFailed, resultExitCode)
	case d.kind == typeOneshot && d.remainAfterExit:
		u.state(one, activeActive, subExited, "")
	default:
		u.state(one, activeInactive, subDead, "")
	}
	if err == nil {
		err = ctx.Err()
	}
	run.readyWith(err)
	close(run.done)
	if run.again && u.base != nil && u.base.Err() == nil && one.load == loadLoaded {
		if one.definition == nil {
			u.read(one)
		}
		u.launch(one)
	}
}

// readyWith lets the callers of Start continue. The lock is held.
func (r *unitRun) readyWith(err error) {
	select {
	case <-r.ready:
	default:
		r.err = err
		close(r.ready)
	}
}

var errStartLimit = errors.New("start request repeated too quickly")

// attempts runs a unit, restarts it as its Restart policy demands, and returns the error of the last run.
func (u *Units) attempts(ctx context.Context, one *unit, d *definition, run *unitRun) error {
	for {
		if !u.mayStart(one, d) {
			u.log(one.name, "systemd", 1, errStartLimit.Error())
			return fmt.Errorf("unit %s: %w", one.name, errStartLimit)
		}
		err := u.runOnce(ctx, one, d, run)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			u.log(one.name, "systemd", 1, "Failed: "+err.Error())
		}
		if limit := (*shell.LimitError)(nil); errors.As(err, &limit) { // a restart would hit the limit again
			return err
		}
		again := d.restart == restartAlways || d.restart == restartOnFailure && err != nil || d.restart == restartOnSuccess && err == nil
		if !again || d.kind == typeOneshot && err == nil {
			return err
		}
		if !u.pause(ctx, one, d) {
			return nil
		}
	}
}

// mayStart counts a start of a unit, and reports whether the start limit allows it.
func (u *Units) mayStart(one *unit, d *definition) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.m.cfg.Clock.Now()
	for len(one.starts) > 0 && now.Sub(one.starts[0]) >= d.startInterval {
		one.starts = one.starts[1:]
	}
	if d.startLimit > 0 && d.startInterval > 0 && len(one.starts) >= d.startLimit {
		return false
	}
	one.starts = append(one.starts, now)
	if keep := max(d.startLimit, 1); len(one.starts) > keep {
		one.starts = one.starts[len(one.starts)-keep:]
	}
	return true
}

// minRestartDelay is the minimum delay before a restart, so that a unit without a start limit is no busy loop.
const minRestartDelay = 100 * time.Millisecond

// pause waits before a restart; it returns false if the unit is stopped meanwhile.
func (u *Units) pause(ctx context.Context, one *unit, d *definition) bool {
	timer := u.m.cfg.Clock.NewTimer(max(d.restartDelay, minRestartDelay))
	defer timer.Stop()
	u.mu.Lock()
	one.pid = 0
	u.state(one, activeActivating, subAutoRestart, resultExitCode)
	u.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (u *Units) runOnce(ctx context.Context, one *unit, d *definition, run *unitRun) error {
	u.mu.Lock()
	u.nextPID++
	one.pid = u.nextPID
	pid := one.pid
	u.mu.Unlock()
	limit := time.Duration(-1)
	if d.kind == typeOneshot && d.timeoutStart > 0 {
		limit = d.timeoutStart
	}
	for _, line := range d.pre {
		if err := u.execute(ctx, one, d, line, pid, limit); err != nil {
			return fmt.Errorf("ExecStartPre=%s: %w", line.words[0], err)
		}
	}
	if d.kind != typeOneshot {
		u.mu.Lock()
		if ctx.Err() == nil {
			u.state(one, activeActive, subRunning, "")
			run.readyWith(nil)
		}
		u.mu.Unlock()
	}
	for _, line := range d.start {
		if err := u.execute(ctx, one, d, line, pid, limit); err != nil {
			return fmt.Errorf("%s: %w", line.words[0], err)
		}
	}
	return nil
}

// stopTimeout is how long all ExecStop commands of a unit together may take by the machine's clock.
const stopTimeout = 10 * time.Second

func (u *Units) runStop(ctx context.Context, one *unit, d *definition) {
	ctx, cancel := u.m.withTimeout(context.WithoutCancel(ctx), stopTimeout, "stopping")
	defer cancel()
	for _, line := range d.stop {
		if err := u.execute(ctx, one, d, line, 0, stopTimeout); err != nil {
			u.log(one.name, "systemd", 1, "ExecStop="+line.words[0]+": "+err.Error())
		}
	}
}
