package kubeconfig

import (
	"context"
	"sync"
	"time"
)

// readTimeout bounds a read, which goes on for others when the call that began it has been given up.
const readTimeout = 10 * time.Second

// sharedReads lets calls for the same thing share reads of it. A call never gets what was read, even in part, before it
// came: while a read is under way, the calls that come wait for its end and then share the next one. So there are two at
// a time at most, one that runs and one that waits.
type sharedReads[K comparable, V any] struct {
	mu               sync.Mutex
	running, waiting map[K]*read[V]
}

// read is one read, and what it found once done is closed.
type read[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func newSharedReads[K comparable, V any]() *sharedReads[K, V] {
	return &sharedReads[K, V]{running: map[K]*read[V]{}, waiting: map[K]*read[V]{}}
}

// do returns what fn finds. The call that begins a read runs it, and waits for it even if its own context ends.
func (s *sharedReads[K, V]) do(ctx context.Context, key K, fn func(context.Context) (V, error)) (V, error) {
	s.mu.Lock()
	if r := s.waiting[key]; r != nil {
		s.mu.Unlock()
		select {
		case <-r.done:
			return r.value, r.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	own := &read[V]{done: make(chan struct{})}
	if before := s.running[key]; before != nil {
		s.waiting[key] = own
		s.mu.Unlock()
		<-before.done
		s.mu.Lock()
		delete(s.waiting, key)
	}
	s.running[key] = own
	s.mu.Unlock()
	s.run(ctx, key, own, fn)
	return own.value, own.err
}

func (s *sharedReads[K, V]) run(ctx context.Context, key K, r *read[V], fn func(context.Context) (V, error)) {
	r.err = context.Canceled // unless fn returns
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[key] == r {
			delete(s.running, key)
		}
		close(r.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	r.value, r.err = fn(ctx)
}
