package etcdwatch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

var errSlow = errors.New("the watch does not keep up with the changes; list again")

// Service is the Watch service. It hands out events only while Run is running.
type Service struct {
	hub      *hub
	interval time.Duration
	lastID   atomic.Int64
}

// New returns the service. It sends progress notifications at each interval to the watches that want them.
func New(ctx context.Context, backend server.Backend, interval time.Duration) (*Service, error) {
	hub, err := newHub(ctx, backend)
	if err != nil {
		return nil, err
	}
	return &Service{hub: hub, interval: interval}, nil
}

// Run hands out events until the context ends.
func (s *Service) Run(ctx context.Context) { s.hub.run(ctx) }

// Watch serves one stream of watches.
func (s *Service) Watch(ws etcdserverpb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancel(ws.Context())
	st := newStream(s.hub, ws)
	ended := make(chan struct{}, 2)
	go func() {
		st.send(ctx)
		ended <- struct{}{}
	}()
	go func() {
		st.followProgress(ctx, s.interval)
		ended <- struct{}{}
	}()
	defer func() {
		cancel()
		st.close()
		<-ended
		<-ended
	}()
	for {
		request, err := ws.Recv()
		if err != nil {
			return err
		}
		switch {
		case request.GetCreateRequest() != nil:
			s.create(ctx, st, request.GetCreateRequest())
		case request.GetCancelRequest() != nil:
			st.cancel(request.GetCancelRequest().WatchId)
		case request.GetProgressRequest() != nil:
			signal(st.asked)
		}
	}
}

func (s *Service) create(ctx context.Context, st *stream, r *etcdserverpb.WatchCreateRequest) {
	if r.WatchId != 0 || r.StartRevision < 0 {
		st.refuse(server.ErrInvalidWatch)
		return
	}
	w := &watch{id: s.lastID.Add(1), key: string(r.Key), until: string(r.RangeEnd), wantsProgress: r.ProgressNotify, stream: st}
	if w.key == compactKey {
		w.key = compactKeyAPI
	}
	s.hub.join(ctx, w, r.StartRevision)
}
