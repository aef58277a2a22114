package etcdwatch

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k3s-io/kine/pkg/server"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

type script struct {
	batches   [][]*server.Event
	ends      bool
	compacted int64
}

// fakeBackend plays one script for each subscription, after the events of earlier scripts.
type fakeBackend struct {
	server.Backend
	revision atomic.Int64
	past     []*server.Event
	scripts  chan script
	asked    chan int64 // the start revision of each subscription
}

func (b *fakeBackend) CurrentRevision(context.Context) (int64, error) { return b.revision.Load(), nil }

func (b *fakeBackend) Watch(ctx context.Context, _, _ string, revision int64) server.WatchResult {
	select {
	case b.asked <- revision:
	default:
	}
	var s script // empty once all scripts have been played: no more events
	select {
	case s = <-b.scripts:
	default:
	}
	batches := [][]*server.Event{slices.DeleteFunc(slices.Clone(b.past), func(e *server.Event) bool { return e.KV.ModRevision < revision })}
	for _, batch := range s.batches {
		batches = append(batches, batch)
		b.past = append(b.past, batch...)
	}
	events := make(chan []*server.Event)
	go func() {
		defer close(events)
		for _, batch := range batches {
			select {
			case events <- batch:
			case <-ctx.Done():
				return
			}
		}
		if !s.ends {
			<-ctx.Done()
		}
	}()
	return server.WatchResult{Events: events, Errorc: make(chan error), CurrentRevision: b.revision.Load(), CompactRevision: s.compacted}
}

func eventsAt(revisions ...int64) (events []*server.Event) {
	for _, revision := range revisions {
		events = append(events, &server.Event{Create: true, KV: &server.KeyValue{Key: "/a", ModRevision: revision}})
	}
	return events
}

// startHub runs a hub at revision 10 with one watch, until the test ends.
func startHub(t *testing.T, scripts ...script) (*hub, *fakeBackend, *watch) {
	backend := &fakeBackend{scripts: make(chan script, len(scripts)), asked: make(chan int64, len(scripts)+1)}
	backend.revision.Store(10)
	for _, s := range scripts {
		backend.scripts <- s
	}
	h, err := newHub(t.Context(), backend)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{id: 1, key: "/a", stream: newStream(h, nil)}
	h.join(t.Context(), w, 0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		h.run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return h, backend, w
}

func reached(t *testing.T, h *hub, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Timeout)
	defer cancel()
	if !h.reached(ctx, revision) {
		t.Fatalf("revision %d was not reached", revision)
	}
}

func (w *watch) pendingRevisions() (revisions []int64) {
	w.stream.hub.mu.Lock()
	defer w.stream.hub.mu.Unlock()
	for _, event := range w.pending {
		revisions = append(revisions, event.KV.ModRevision)
	}
	return revisions
}

func TestLostSubscriptionIsRenewed(t *testing.T) {
	h, backend, w := startHub(t,
		script{batches: [][]*server.Event{eventsAt(11, 12)}, ends: true},
		script{batches: [][]*server.Event{eventsAt(12, 13)}}) // 12 comes twice
	reached(t, h, 13)
	if got := w.pendingRevisions(); !slices.Equal(got, []int64{11, 12, 13}) {
		t.Errorf("the watch got %v", got)
	}
	if first, second := <-backend.asked, <-backend.asked; first != 11 || second != 13 {
		t.Errorf("subscribed from %d and from %d", first, second)
	}
}

// TestSilentSubscriptionIsRenewed: a subscription that could not begin is noticed although no client waits for a revision.
func TestSilentSubscriptionIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, backend, w := startHub(t, script{}, script{batches: [][]*server.Event{eventsAt(11)}})
		backend.revision.Store(11)
		time.Sleep(2*checkInterval + time.Second)
		synctest.Wait()
		if got := w.pendingRevisions(); !slices.Equal(got, []int64{11}) {
			t.Errorf("the watch got %v", got)
		}
	})
}

// neverEnds is a backend whose subscriptions could not begin: it sends nothing, and does not close the channel.
type neverEnds struct {
	server.Backend
	events chan []*server.Event
}

func (b neverEnds) Watch(context.Context, string, string, int64) server.WatchResult {
	return server.WatchResult{Events: b.events, Errorc: make(chan error)}
}

// TestHistoryThatDoesNotCome: a watch that starts in the past is ended, and does not block the others of its stream.
func TestHistoryThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := make(chan []*server.Event)
		defer close(silent) // ends the goroutine that still reads from it
		h := &hub{backend: neverEnds{events: silent}}
		begin := time.Now()
		if _, _, err := h.readHistory(t.Context(), 1, 5); !errors.Is(err, errHistory) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != historyPatience+drainTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

// TestHistoryWithoutARevision: kine returns what it has read of the past when the connection to the database breaks.
func TestHistoryWithoutARevision(t *testing.T) {
	for missing, want := range map[int64]error{0: nil, 3: errHistory} {
		past := make(chan []*server.Event, 5)
		for revision := int64(1); revision <= 5; revision++ {
			if revision != missing {
				past <- eventsAt(revision)
			}
		}
		close(past)
		h := &hub{backend: neverEnds{events: past}}
		events, _, err := h.readHistory(t.Context(), 1, 5)
		if !errors.Is(err, want) || err == nil && len(events) != 5 {
			t.Errorf("without revision %d: %d events, %v", missing, len(events), err)
		}
	}
}

// TestRevisionWithoutEvent: kine's SQL drivers use up a revision when an insert fails, and report it only to later
// subscribers.
func TestRevisionWithoutEvent(t *testing.T) {
	gap := eventsAt(11)
	gap[0].KV.Key = "gap-11"
	h, _, w := startHub(t, script{}, script{batches: [][]*server.Event{gap}})
	reached(t, h, 11)
	if got := w.pendingRevisions(); len(got) > 0 {
		t.Errorf("the watch got %v", got)
	}
}

func TestForgottenPastEndsWatches(t *testing.T) {
	h, backend, w := startHub(t, script{ends: true}, script{compacted: 15, ends: true}, script{})
	backend.revision.Store(20)
	reached(t, h, 20)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !w.ended {
		t.Fatal("the watch goes on, with events missing")
	}
	if last := w.stream.said[len(w.stream.said)-1]; !last.Canceled || last.CompactRevision != 15 {
		t.Errorf("the client is told %v", last)
	}
}

func TestSlowReaderIsCutOff(t *testing.T) {
	h, err := newHub(t.Context(), &fakeBackend{})
	if err != nil {
		t.Fatal(err)
	}
	slow := &watch{id: 1, key: "/a", stream: newStream(h, nil)}
	h.join(t.Context(), slow, 0)
	const n = 20
	for i := range int64(n) {
		events := eventsAt(11 + i)
		events[0].KV.Value = make([]byte, 2*maxPendingBytes/n)
		h.publish(events)
	}
	if !slow.ended || len(slow.pending) > 0 {
		t.Errorf("after %d MiB the watch has %d events waiting", 2*maxPendingBytes>>20, len(slow.pending))
	}
	if h.window.bytes > windowBytes {
		t.Errorf("%d bytes are kept of the past", h.window.bytes)
	}
}
