package etcdwatch

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/k3s-io/kine/pkg/server"
)

// eventsPerResponse is the maximum number of events in one message; further events follow in the next messages.
const eventsPerResponse = 500

// stream is one gRPC stream. Only its method send sends on it.
type stream struct {
	hub   *hub
	ws    etcdserverpb.Watch_WatchServer
	wake  chan struct{} // there is something to send
	asked chan struct{} // the client asked for progress

	// The following fields are guarded by the lock of the hub.
	watches     map[int64]*watch
	said        []*etcdserverpb.WatchResponse // responses that are sent before any event
	announceAll bool                          // send one progress notification for all watches of the stream
	announceDue bool                          // notify the watches that want it and had no events lately
}

func newStream(h *hub, ws etcdserverpb.Watch_WatchServer) *stream {
	return &stream{hub: h, ws: ws, wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), watches: map[int64]*watch{}}
}

func (st *stream) close() {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	for _, w := range st.watches {
		delete(st.hub.watches, w)
	}
	clear(st.watches)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// enqueue queues a response. The caller holds the lock of the hub.
func (st *stream) enqueue(response *etcdserverpb.WatchResponse) {
	st.said = append(st.said, response)
	signal(st.wake)
}

// refuse answers an invalid request for a watch.
func (st *stream) refuse(err error) {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	st.enqueue(&etcdserverpb.WatchResponse{
		Header:       &etcdserverpb.ResponseHeader{Revision: st.hub.revision},
		WatchId:      clientv3.InvalidWatchID,
		Created:      true,
		Canceled:     true,
		CancelReason: err.Error(),
	})
}

func (st *stream) cancel(id int64) {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	if w, ok := st.watches[id]; ok {
		w.end(nil, 0)
	}
}

// followProgress sends progress notifications to the client, on request and at each interval.
func (st *stream) followProgress(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		all := false
		select {
		case <-st.asked:
			all = true
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		revision, err := st.hub.backend.CurrentRevision(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				logrus.Warnf("Reading the datastore's revision: %v", err)
			}
			continue
		}
		if !st.hub.reached(ctx, revision) {
			return
		}
		st.hub.mu.Lock()
		st.announceAll, st.announceDue = st.announceAll || all, st.announceDue || !all
		st.hub.mu.Unlock()
		signal(st.wake)
	}
}

// send sends everything that is pending until the context ends or the client is gone.
func (st *stream) send(ctx context.Context) {
	for {
		select {
		case <-st.wake:
		case <-ctx.Done():
			return
		}
		batch := st.take()
		for _, response := range batch.said {
			if st.ws.Send(response) != nil {
				return
			}
		}
		for _, part := range batch.parts {
			if !st.sendEvents(part.id, part.events) {
				return
			}
		}
		for _, id := range batch.progress {
			header := &etcdserverpb.ResponseHeader{Revision: batch.revision}
			if st.ws.Send(&etcdserverpb.WatchResponse{Header: header, WatchId: id}) != nil {
				return
			}
		}
	}
}

func (st *stream) sendEvents(id int64, events []*server.Event) bool {
	for len(events) > 0 {
		n := min(len(events), eventsPerResponse)
		err := st.ws.Send(&etcdserverpb.WatchResponse{
			Header:  &etcdserverpb.ResponseHeader{Revision: events[n-1].KV.ModRevision},
			WatchId: id,
			Events:  toEvents(events[:n]),
		})
		if err != nil {
			return false
		}
		events = events[n:]
	}
	return true
}

// batch is what is sent at one time: everything that is pending up to a revision.
type batch struct {
	revision int64
	said     []*etcdserverpb.WatchResponse
	parts    []part
	progress []int64
}

type part struct {
	id     int64
	events []*server.Event
}

func (st *stream) take() batch {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	b := batch{revision: st.hub.revision, said: st.said}
	st.said = nil
	for id, w := range st.watches {
		switch {
		case w.ended:
			delete(st.watches, id)
			delete(st.hub.watches, w)
		case len(w.pending) > 0:
			b.parts = append(b.parts, part{id, w.pending})
			w.pending, w.bytes = nil, 0
		case st.announceDue && !st.announceAll && w.wantsProgress && !w.busy:
			b.progress = append(b.progress, id)
		}
		if st.announceDue {
			w.busy = false
		}
	}
	if st.announceAll {
		b.progress = append(b.progress, clientv3.InvalidWatchID)
	}
	st.announceAll, st.announceDue = false, false
	return b
}
