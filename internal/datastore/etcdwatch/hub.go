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
	// windowEvents and windowBytes limit the recent events that are kept, so that a watch that starts slightly behind
	// does not read from the datastore.
	windowEvents = 1000
	windowBytes  = 4 << 20
	// maxPendingBytes limits the events that are pending for one slow reader. Above it, the watch is cancelled, and the
	// client has to list again.
	maxPendingBytes = 64 << 20
	// historyPatience is how long the datastore may take to return past events.
	historyPatience = 30 * time.Second
	// resubscribeAfter is how long the subscription may lag behind the current revision before it is renewed: some
	// revisions have no event.
	resubscribeAfter = 50 * time.Millisecond
	// retryAfter is the time between two attempts to subscribe.
	retryAfter = 200 * time.Millisecond
	// drainTimeout is how long to wait for the end of a subscription, which usually takes microseconds.
	drainTimeout = 2 * time.Second
	// checkInterval is how often a subscription is compared with the current revision. kine does not report that a
	// subscription could not begin, and without a client that waits for a revision nothing else would notice it.
	checkInterval = 10 * time.Second
)

var errHistory = errors.New("the datastore does not tell what happened before; list again")

// hub holds the only subscription to the backend, and passes its events to the watches.
type hub struct {
	backend server.Backend
	renew   chan struct{} // asks for a new subscription

	mu       sync.Mutex
	revision int64         // all events up to this revision have been handed out
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

// run hands out events until the context ends. It subscribes again when a subscription ends or lags.
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

// subscription hands out the events of one subscription. It reports whether the next one may follow immediately.
func (h *hub) subscription(parent context.Context) bool {
	ctx, cancel := context.WithCancel(parent)
	h.mu.Lock()
	from := h.revision + 1
	h.mu.Unlock()
	select {
	case <-h.renew: // this subscription is a new one already
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
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	var due int64 // the current revision at the last check
	for {
		select {
		case <-h.renew:
			return true
		case <-check.C:
			h.mu.Lock()
			lags := h.revision < due
			h.mu.Unlock()
			if lags {
				return true
			}
			if current, err := h.backend.CurrentRevision(ctx); err == nil {
				due = current
			}
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

// drain reads the remaining events, so that the goroutines of the backend end. For a subscription that failed before it
// began they never do: kine reports no error, and does not close the channel.
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

// publish hands events to all watches. It drops events that were handed out before.
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

// reset ends all watches: the datastore has compacted events that they have not received.
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
			signal(h.renew)
			lagging.Reset(20 * resubscribeAfter)
		case <-ctx.Done():
			return false
		}
	}
}

// join adds a watch, with all past events that it has to receive. The client is told of the watch only after these have
// been read: progress notifications from before do not concern the watch.
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

// history reads all events from a revision up to that of the hub. The caller holds the lock. history releases it while
// it reads; no event is lost in the meantime, because the watch is not in h.watches yet and the window is checked
// again.
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
	// The watch receives later events together with the other watches.
	for len(events) > 0 && events[len(events)-1].KV.ModRevision > h.revision {
		events = events[:len(events)-1]
	}
	return events, 0, nil
}

// readHistory reads the events of all keys between two revisions. It knows when it has all of them because each
// revision has an event. One is missing if the connection to the database breaks while kine reads.
func (h *hub) readHistory(parent context.Context, from, to int64) ([]*server.Event, int64, error) {
	ctx, cancel := context.WithTimeout(parent, historyPatience)
	result := h.backend.Watch(ctx, "", "", from)
	defer func() {
		cancel()
		drain(result.Events)
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
				if event == nil || event.KV == nil {
					continue
				}
				if n := len(events); n > 0 && event.KV.ModRevision != events[n-1].KV.ModRevision+1 {
					return nil, 0, errHistory
				}
				events = append(events, event)
			}
			if n := len(events); n > 0 && events[n-1].KV.ModRevision >= to {
				return events, 0, nil
			}
		case <-result.Errorc:
			return nil, 0, errHistory
		case <-ctx.Done():
			return nil, 0, errHistory
		}
	}
}

// window has the recent events: all after a revision.
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
