package etcdwatch

import (
	"bytes"

	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// kine uses a key of this name itself, and stores that of the API server under another name.
const (
	compactKey    = "compact_rev_key"
	compactKeyAPI = "compact_rev_key_apiserver"
)

// watch is one watch of a stream. Its fields are guarded by the lock of the hub.
type watch struct {
	id            int64
	key, until    string
	from          int64
	wantsProgress bool
	stream        *stream

	pending []*server.Event
	bytes   int
	busy    bool // has had events since the last round of progress notifications
	ended   bool
}

// push adds those of the events that are in the range of the watch.
func (w *watch) push(events []*server.Event) {
	if w.ended {
		return
	}
	before := len(w.pending)
	for _, event := range events {
		if event.KV.ModRevision >= w.from && event.InRange(w.key, w.until) {
			w.pending = append(w.pending, event)
			w.bytes += size(event)
		}
	}
	if len(w.pending) == before {
		return
	}
	w.busy = true
	if w.bytes > maxPendingBytes {
		w.end(errSlow, 0)
		return
	}
	signal(w.stream.wake)
}

// end lets the stream tell the client that the watch is cancelled. err is nil if the client has requested it.
func (w *watch) end(err error, compacted int64) {
	if w.ended {
		return
	}
	w.ended, w.pending, w.bytes = true, nil, 0
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	w.stream.enqueue(&etcdserverpb.WatchResponse{
		Header:          &etcdserverpb.ResponseHeader{Revision: w.stream.hub.revision},
		WatchId:         w.id,
		Canceled:        true,
		CancelReason:    reason,
		CompactRevision: compacted,
	})
}

func toEvents(events []*server.Event) []*mvccpb.Event {
	converted := make([]*mvccpb.Event, 0, len(events))
	for _, event := range events {
		e := &mvccpb.Event{Type: mvccpb.PUT, Kv: toKeyValue(event.KV)}
		if event.Delete {
			e.Type = mvccpb.DELETE
		}
		if !event.Create {
			e.PrevKv = toKeyValue(event.PrevKV)
		}
		converted = append(converted, e)
	}
	return converted
}

func toKeyValue(kv *server.KeyValue) *mvccpb.KeyValue {
	if kv == nil {
		return nil
	}
	converted := &mvccpb.KeyValue{
		Key:            []byte(kv.Key),
		Value:          kv.Value,
		Version:        kv.Version,
		Lease:          kv.Lease,
		CreateRevision: kv.CreateRevision,
		ModRevision:    kv.ModRevision,
	}
	if bytes.Equal(converted.Key, []byte(compactKeyAPI)) {
		converted.Key = []byte(compactKey)
		converted.Version, converted.Value = server.DecodeVersion(kv.Value)
	}
	return converted
}
