package shootplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
)

// A failed attempt is retried after a backoff that doubles from retryFirst up to retryLast. The backoff starts over if the
// API server has run for longer than retryLast.
const (
	retryFirst = time.Second
	retryLast  = time.Minute
	// startTimeout is the timeout of a start.
	startTimeout = 2 * time.Minute
)

// plane is one control plane. Only its worker (run) starts and stops things; the other methods pass the desired state to
// it and read the status.
type plane struct {
	host      *Host
	id, owner string
	cancel    context.CancelFunc
	// changed wakes the worker, ended is closed when it has ended.
	changed, ended chan struct{}

	mu       sync.Mutex
	desired  DesiredState
	status   Status
	removing bool
	purging  bool
}

// spec returns what the worker has to bring about.
func (p *plane) spec() (desired DesiredState, removing, purging bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desired, p.removing, p.purging
}

func (p *plane) apply(desired DesiredState) {
	p.mu.Lock()
	p.desired = desired
	p.mu.Unlock()
	p.wake()
}

func (p *plane) remove(data bool) {
	p.mu.Lock()
	p.desired, p.removing, p.purging = DesiredState{}, true, p.purging || data
	p.mu.Unlock()
	p.wake()
}

func (p *plane) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *plane) observe() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// update changes the status, and notifies the Host if it is different.
func (p *plane) update(change func(*Status)) {
	p.mu.Lock()
	before := p.status
	change(&p.status)
	now := p.status
	p.mu.Unlock()
	if now != before {
		p.host.notify(now)
	}
}

func (p *plane) setPhase(phase Phase) {
	p.update(func(s *Status) { s.Phase, s.Message = phase, "" })
}

// run brings about the desired state until the control plane is removed or the context ends.
func (p *plane) run(ctx context.Context) {
	w := &worker{plane: p, server: backoff{clock: p.host.cfg.Clock}, controllers: backoff{clock: p.host.cfg.Clock}}
	defer func() {
		w.stop()
		close(p.ended)
		p.host.wakeOwner(p.id, p.owner) // the seed's next reconciliation removes the control plane from the Host
	}()
	for ctx.Err() == nil {
		w.now = p.host.cfg.Clock.Now()
		desired, removing, purging := p.spec()
		w.reconcile(ctx, desired, removing)
		if removing && w.running == nil && w.server.isOver(w.now) {
			err := p.host.clean(ctx, p.id, purging)
			if err == nil {
				return
			}
			w.fail(err)
		}
		w.wait(ctx)
	}
}

// worker is the state of the goroutine of a plane.
type worker struct {
	*plane
	// now is the time for which reconcile and wait check whether a backoff is over: wait does not miss one that ends
	// between the two.
	now     time.Time
	running *running
	// started is when the API server was started.
	started time.Time
	// tried is the desired state of the last attempt; another one is not delayed by the backoff.
	tried               DesiredState
	server, controllers backoff
}

// reconcile brings about the desired state as far as possible. It returns when it can only wait.
func (w *worker) reconcile(ctx context.Context, desired DesiredState, removing bool) {
	if !desired.sameServer(w.tried) {
		w.server.reset()
		w.controllers.reset()
	}
	if w.running != nil && w.running.ended() {
		err := fmt.Errorf("the API server has ended by itself: %w", errors.Join(w.running.server.Err(), w.running.stop()))
		if w.host.cfg.Clock.Since(w.started) > retryLast {
			w.server.reset()
		}
		w.running = nil
		w.fail(err)
	}
	if w.running != nil && !desired.sameServer(w.running.desired) {
		w.stop()
	}
	if !desired.APIServer {
		if !removing { // otherwise it would hide a failed deletion
			w.setPhase(Stopped)
		}
		return
	}
	if w.running == nil && w.server.isOver(w.now) {
		w.start(ctx, desired)
	}
	if w.running != nil {
		w.reconcileControllers(ctx, desired)
	}
}

func (w *worker) start(ctx context.Context, desired DesiredState) {
	w.tried = desired
	w.setPhase(Waiting)
	select {
	case w.host.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-w.host.slots }()
	w.setPhase(Starting)
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	running, err := w.host.start(startCtx, w.id, desired)
	if err != nil {
		if ctx.Err() == nil {
			w.fail(err)
		}
		return
	}
	w.running = running
	w.started = w.host.cfg.Clock.Now()
	w.update(func(s *Status) {
		s.Phase, s.Message = Ready, ""
		s.Port, s.URL = running.server.Port(), running.server.URL()
		s.Checksum, s.Version = desired.Checksum, desired.Version
	})
}

func (w *worker) fail(err error) {
	w.host.cfg.Log.Error(err, "A shoot's control plane does not run; trying again", "shoot", w.id)
	w.server.extend()
	w.update(func(s *Status) {
		s.Phase, s.Message, s.Controllers, s.Checksum, s.Version = Failed, err.Error(), false, "", ""
	})
}

func (w *worker) reconcileControllers(ctx context.Context, desired DesiredState) {
	wanted := desired.Controllers
	switch {
	case !wanted && w.running.controllers != nil:
		w.running.stopControllers()
	case wanted && w.running.controllers == nil && w.controllers.isOver(w.now):
		if err := w.running.startControllers(ctx, desired, w.deleteVolume()); err != nil {
			w.controllers.extend()
			w.host.cfg.Log.Error(err, "The controllers of a shoot do not run; trying again", "shoot", w.id)
			w.update(func(s *Status) { s.Controllers, s.ControllersMessage = false, err.Error() })
			return
		}
		w.controllers.reset()
	}
	if wanted == (w.running.controllers != nil) {
		w.update(func(s *Status) { s.Controllers, s.ControllersMessage = wanted, "" })
	}
}

// stop stops the API server and the controllers, if they run.
func (w *worker) stop() {
	if w.running == nil {
		return
	}
	w.update(func(s *Status) { s.Phase, s.Message, s.Controllers = Stopping, "", false })
	if err := w.running.stop(); err != nil {
		w.host.cfg.Log.Error(err, "A shoot's control plane did not stop well", "shoot", w.id)
	}
	w.running = nil
	w.update(func(s *Status) { s.Phase, s.Checksum, s.Version, s.ControllersMessage = Stopped, "", "", "" })
}

// wait waits until there may be something to do.
func (w *worker) wait(ctx context.Context) {
	var ended <-chan struct{}
	if w.running != nil {
		ended = w.running.server.Done()
	}
	select {
	case <-ctx.Done():
	case <-w.changed:
	case <-ended:
	case <-w.server.left(w.now):
	case <-w.controllers.left(w.now):
	}
}

// deleteVolume returns what deletes the data of a PersistentVolume, nil if there is none.
func (w *worker) deleteVolume() func(types.UID) error {
	if w.host.cfg.DeleteVolume == nil {
		return nil
	}
	return func(volume types.UID) error { return w.host.cfg.DeleteVolume(w.id, volume) }
}

// backoff is an exponential backoff between attempts. It doubles with each failure.
type backoff struct {
	clock  clock.WithTicker
	length time.Duration
	until  time.Time
}

// isOver reports whether the next attempt is allowed.
func (b *backoff) isOver(now time.Time) bool { return !now.Before(b.until) }

// extend begins after a failed attempt.
func (b *backoff) extend() {
	b.length = min(max(2*b.length, retryFirst), retryLast)
	b.until = b.clock.Now().Add(b.length)
}

// reset ends the backoff, and makes the next one short again.
func (b *backoff) reset() { b.length, b.until = 0, time.Time{} }

// left returns a channel that receives a value when the backoff is over; nil if it was over at the given time.
func (b *backoff) left(now time.Time) <-chan time.Time {
	if b.isOver(now) {
		return nil
	}
	return b.clock.After(b.until.Sub(b.clock.Now()))
}

// clean deletes the certificates of a stopped control plane and, if data is true, its data.
func (h *Host) clean(ctx context.Context, id string, data bool) error {
	if err := os.RemoveAll(h.pkiDir(id)); err != nil {
		return fmt.Errorf("deleting the certificates: %w", err)
	}
	if !data {
		return nil
	}
	if err := controlplane.DeleteData(ctx, h.cfg.Datastore, h.dataDir(id), h.cfg.Prefix(id)); err != nil {
		return err
	}
	for _, name := range []string{PortFile, OwnerFile} {
		if err := h.cfg.Keeper.Remove(filepath.Join(h.dataDir(id), name)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(h.dataDir(id)); err != nil {
		return fmt.Errorf("deleting the data: %w", err)
	}
	if h.cfg.DeleteVolumes != nil {
		return h.cfg.DeleteVolumes(id)
	}
	return nil
}
