package shootplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/controlplane"
)

// A failed attempt is retried after a pause that doubles from retryFirst up to retryLast. The pause starts over if the
// API server has run for longer than retryLast.
const (
	retryFirst = time.Second
	retryLast  = time.Minute
	// startTimeout is the timeout of a start.
	startTimeout = 2 * time.Minute
)

// plane is one control plane. Only its worker (run) starts and stops things; the other methods pass orders to it and
// read the state.
type plane struct {
	host      *Host
	id, owner string
	cancel    context.CancelFunc
	// changed wakes the worker, ended is closed when it has ended.
	changed, ended chan struct{}

	mu       sync.Mutex
	order    Order
	state    State
	removing bool
	purging  bool
}

func (p *plane) ordered() Order {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order
}

func (p *plane) put(order Order) {
	p.mu.Lock()
	p.order = order
	p.mu.Unlock()
	p.wake()
}

func (p *plane) remove(data bool) {
	p.mu.Lock()
	p.order, p.removing, p.purging = Order{}, true, p.purging || data
	p.mu.Unlock()
	p.wake()
}

func (p *plane) isRemoving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removing
}

func (p *plane) isPurging() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.purging
}

func (p *plane) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *plane) observe() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// update changes the state, and notifies the Host if it is different.
func (p *plane) update(change func(*State)) {
	p.mu.Lock()
	before := p.state
	change(&p.state)
	now := p.state
	p.mu.Unlock()
	if now != before {
		p.host.notify(now)
	}
}

func (p *plane) enter(phase Phase) {
	p.update(func(s *State) { s.Phase, s.Message = phase, "" })
}

// run carries out the orders until the control plane is removed or the context ends.
func (p *plane) run(ctx context.Context) {
	w := &worker{plane: p, server: pause{clock: p.host.cfg.Clock}, controllers: pause{clock: p.host.cfg.Clock}}
	defer func() {
		w.stop()
		close(p.ended)
		p.host.wakeOwner(p.id, p.owner) // the seed's next reconciliation removes the control plane from the Host
	}()
	for ctx.Err() == nil {
		order := p.ordered()
		w.bring(ctx, order)
		if p.isRemoving() && w.running == nil && w.server.over() {
			err := p.host.clean(ctx, p.id, p.isPurging())
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
	running *running
	// tried is the order of the last attempt; another order is not delayed by the pause.
	tried               Order
	server, controllers pause
}

// bring carries out an order as far as possible. It returns when it can only wait.
func (w *worker) bring(ctx context.Context, order Order) {
	if !order.sameServer(w.tried) {
		w.server.reset()
		w.controllers.reset()
	}
	if w.running != nil && w.running.ended() {
		err := fmt.Errorf("the API server has ended by itself: %w", errors.Join(w.running.server.Err(), w.running.stop()))
		w.ranFor()
		w.running = nil
		w.fail(err)
	}
	if w.running != nil && !order.sameServer(w.running.order) {
		w.stop()
	}
	if !order.APIServer {
		if !w.isRemoving() { // otherwise it would hide a failed deletion
			w.enter(Stopped)
		}
		return
	}
	if w.running == nil && w.server.over() {
		w.start(ctx, order)
	}
	if w.running != nil {
		w.bringControllers(ctx, order)
	}
}

func (w *worker) start(ctx context.Context, order Order) {
	w.tried = order
	w.enter(Waiting)
	select {
	case w.host.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-w.host.slots }()
	w.enter(Starting)
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	running, err := w.host.start(startCtx, w.id, order)
	if err != nil {
		if ctx.Err() == nil {
			w.fail(err)
		}
		return
	}
	w.running = running
	w.server.begin()
	w.update(func(s *State) {
		s.Phase, s.Message = Ready, ""
		s.Port, s.URL = running.server.Port(), running.server.URL()
		s.Checksum, s.Version = order.Checksum, order.Version
	})
}

func (w *worker) fail(err error) {
	w.host.cfg.Log.Error(err, "A shoot's control plane does not run; trying again", "shoot", w.id)
	w.server.more()
	w.update(func(s *State) {
		s.Phase, s.Message, s.Controllers, s.Checksum, s.Version = Failed, err.Error(), false, "", ""
	})
}

func (w *worker) ranFor() {
	if w.server.since() > retryLast {
		w.server.reset()
	}
}

func (w *worker) bringControllers(ctx context.Context, order Order) {
	wanted := order.Controllers
	switch {
	case !wanted && w.running.controllers != nil:
		w.running.stopControllers()
	case wanted && w.running.controllers == nil && w.controllers.over():
		if err := w.running.startControllers(ctx, order.PodCIDR, w.deleteVolume()); err != nil {
			w.controllers.more()
			w.host.cfg.Log.Error(err, "The controllers of a shoot do not run; trying again", "shoot", w.id)
			w.update(func(s *State) { s.Controllers, s.ControllersMessage = false, err.Error() })
			return
		}
		w.controllers.reset()
	}
	if wanted == (w.running.controllers != nil) {
		w.update(func(s *State) { s.Controllers, s.ControllersMessage = wanted, "" })
	}
}

// stop stops the API server and the controllers, if they run.
func (w *worker) stop() {
	if w.running == nil {
		return
	}
	w.update(func(s *State) { s.Phase, s.Message, s.Controllers = Stopping, "", false })
	if err := w.running.stop(); err != nil {
		w.host.cfg.Log.Error(err, "A shoot's control plane did not stop well", "shoot", w.id)
	}
	w.running = nil
	w.update(func(s *State) { s.Phase, s.Checksum, s.Version, s.ControllersMessage = Stopped, "", "", "" })
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
	case <-w.server.left():
	case <-w.controllers.left():
	}
}

// deleteVolume returns what deletes the data of a PersistentVolume, nil if there is none.
func (w *worker) deleteVolume() func(types.UID) error {
	if w.host.cfg.DeleteVolume == nil {
		return nil
	}
	return func(volume types.UID) error { return w.host.cfg.DeleteVolume(w.id, volume) }
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
	if err := os.RemoveAll(h.dataDir(id)); err != nil {
		return fmt.Errorf("deleting the data: %w", err)
	}
	if h.cfg.DeleteVolumes != nil {
		return h.cfg.DeleteVolumes(id)
	}
	return nil
}
