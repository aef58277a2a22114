package etcdwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// windowEvents and windowBytes bound what is kept of the past, so that a watch that starts a little behind needs
	// nothing of the datastore.
	windowEvents = 1000
	windowBytes  = 4 << 20
	// maxPendingBytes bounds what waits for one slow reader. Past it, its watch is cancelled and it lists again.
	maxPendingBytes = 64 << 20
	// historyPatience is how long the datastore may take to tell of the past.
	historyPatience = 30 * time.Second
	// resubscribeAfter is how long the subscription may lag behind the current revision before it is renewed: some
	// revisions have no event.
	resubscribeAfter = 50 * time.Millisecond
	// retryAfter is the time between two attempts to subscribe.
	retryAfter = 200 * time.Millisecond
	// drainTimeout is for how long the end of a subscription is waited for; it takes microseconds.
	drainTimeout = 2 * time.Second
)

var errHistory = errors.New("the datastore does not tell what happened before; list again")

// hub has the only subscription to the backend, and hands its events to the watches.
type hub struct {
	backend server.Backend
	renew   chan struct{} // asks for a new subscription

	mu       sync.Mutex
	revision int64         // all events up to it have been handed out
	advanced chan struct{} // closed when the revision moves
	window   window
	watches  map[*watch]struct{}
}

func newHub(ctx context.Context, backend server.Backend) (*hub, error) {
	revision, err := backend.CurrentRevision(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the datastore's revision: %w", err)
	}
	return &hub{
		backend:  backend,
		renew:    make(chan struct{}, 1),
		revision: revision,
		advanced: make(chan struct{}),
		window:   window{after: revision},
		watches:  map[*watch]struct{}{},
	}, nil
}

// run hands out events until the context ends. It subscribes again whenever a subscription ends or lags.
func (h *hub) run(ctx context.Context) {
	for ctx.Err() == nil {
		if h.subscription(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// subscription hands out what one subscription brings, and says whether the next one may follow at once.
func (h *hub) subscription(parent context.Context) bool {
	ctx, cancel := context.WithCancel(parent)
	h.mu.Lock()
	from := h.revision + 1
	h.mu.Unlock()
	select {
	case <-h.renew: // this one is new
	default:
	}
	result := h.backend.Watch(ctx, "", "", from)
	defer func() {
		cancel()
		drain(result.Events)
	}()
	if result.CompactRevision != 0 {
		h.reset(result.CurrentRevision, result.CompactRevision)
		return false
	}
	for {
		select {
		case <-h.renew:
			return true
		case err := <-result.Errorc:
			logrus.Warnf("The subscription to the datastore failed, trying again: %v", err)
			return false
		case events, ok := <-result.Events:
			if !ok {
				return false
			}
			h.publish(events)
		case <-ctx.Done():
			return false
		}
	}
}

// drain reads what is left, so that the backend's goroutines end. Those of a subscription that failed before it began never
// do: kine says nothing of it, and closes nothing.
func drain(events <-chan []*server.Event) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range events {
		}
	}()
	select {
	case <-ended:
	case <-time.After(drainTimeout):
	}
}

// publish hands events to all watches. Those that were handed out before are dropped.
func (h *hub) publish(events []*server.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh := make([]*server.Event, 0, len(events))
	last := h.revision
	for _, event := range events {
		if event != nil && event.KV != nil && event.KV.ModRevision > last {
			last = event.KV.ModRevision
			fresh = append(fresh, event)
		}
	}
	if len(fresh) == 0 {
		return
	}
	h.window.add(fresh)
	for w := range h.watches {
		w.push(fresh)
	}
	h.advance(last)
}

// reset ends all watches: the datastore has forgotten events that they have not got.
func (h *hub) reset(current, compacted int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		w.end(server.ErrCompacted, compacted)
	}
	h.window = window{after: current}
	h.advance(current)
}

func (h *hub) advance(revision int64) {
	h.revision = revision
	close(h.advanced)
	h.advanced = make(chan struct{})
}

// reached waits until all events up to the revision have been handed out.
func (h *hub) reached(ctx context.Context, revision int64) bool {
	lagging := time.NewTimer(resubscribeAfter)
	defer lagging.Stop()
	for {
		h.mu.Lock()
		reached, advanced := h.revision >= revision, h.advanced
		h.mu.Unlock()
		if reached {
			return true
		}
		select {
		case <-advanced:
		case <-lagging.C:
			select {
			case h.renew <- struct{}{}:
			default:
			}
			lagging.Reset(20 * resubscribeAfter)
		case <-ctx.Done():
			return false
		}
	}
}

// join adds a watch, with all that it has to get of the past. The client hears of the watch last: what is said of
// progress before does not concern it.
func (h *hub) join(ctx context.Context, w *watch, from int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.from = from; from <= 0 {
		w.from = h.revision + 1
	}
	var (
		past      []*server.Event
		compacted int64
		err       error
	)
	switch {
	case w.from <= h.window.after:
		past, compacted, err = h.history(ctx, w.from)
	case w.from <= h.revision:
		past = h.window.events
	}
	w.stream.watches[w.id] = w
	w.stream.enqueue(&etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: h.revision}, WatchId: w.id, Created: true})
	if err != nil {
		w.end(err, compacted)
		return
	}
	w.push(past)
	h.watches[w] = struct{}{}
}

// history asks the backend for all events from a revision up to the hub's. It is called with the lock held
// and releases it while it asks; no event is lost in between, because the watch is not among the watches yet and the
// window is looked at again.
func (h *hub) history(ctx context.Context, from int64) (events []*server.Event, compacted int64, err error) {
	for {
		want := h.revision
		h.mu.Unlock()
		events, compacted, err = h.readHistory(ctx, from, want)
		h.mu.Lock()
		if err != nil {
			return nil, compacted, err
		}
		if h.window.after <= want {
			break
		}
	}
	last := int64(0)
	if len(events) > 0 {
		last = events[len(events)-1].KV.ModRevision
	}
	for _, event := range h.window.events {
		if event.KV.ModRevision > last {
			events = append(events, event)
		}
	}
	// What the hub has not handed out yet comes with the others.
	for len(events) > 0 && events[len(events)-1].KV.ModRevision > h.revision {
		events = events[:len(events)-1]
	}
	return events, 0, nil
}

// readHistory reads all events, whatever their key, from a revision to another one: because each revision has an event,
// it is known when all have come.
func (h *hub) readHistory(parent context.Context, from, to int64) ([]*server.Event, int64, error) {
	ctx, cancel := context.WithTimeout(parent, historyPatience)
	result := h.backend.Watch(ctx, "", "", from)
	defer func() {
		cancel()
		for range result.Events {
		}
	}()
	if result.CompactRevision != 0 {
		return nil, result.CompactRevision, server.ErrCompacted
	}
	var events []*server.Event
	for {
		select {
		case batch, ok := <-result.Events:
			if !ok {
				return nil, 0, errHistory
			}
			for _, event := range batch {
				if event != nil && event.KV != nil {
					events = append(events, event)
				}
			}
			if n := len(events); n > 0 && events[n-1].KV.ModRevision >= to {
				return events, 0, nil
			}
		case <-ctx.Done():
			return nil, 0, errHistory
		}
	}
}

// window is the recent past: all events after a revision.
type window struct {
	after  int64
	events []*server.Event
	bytes  int
}

func (w *window) add(events []*server.Event) {
	w.events = append(w.events, events...)
	for _, event := range events {
		w.bytes += size(event)
	}
	drop := 0
	for drop < len(w.events) && (len(w.events)-drop > windowEvents || w.bytes > windowBytes) {
		w.bytes -= size(w.events[drop])
		w.after = w.events[drop].KV.ModRevision
		w.events[drop] = nil
		drop++
	}
	w.events = w.events[drop:]
}

func size(event *server.Event) int {
	n := len(event.KV.Key) + len(event.KV.Value)
	if event.PrevKV != nil {
		n += len(event.PrevKV.Value)
	}
	return n
}
