package sharedreads

import (
	"context"
	"sync"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

const (
	// readTimeout bounds a read, which goes on for others when the call that began it has been given up.
	readTimeout = 10 * time.Second
	// keepRead is how long what was read is kept at least, for calls that had come already. One that waits longer reads again.
	keepRead = time.Second
)

type arrivalKey struct{}

// WithArrival notes when a request came, for one that waits before it gets here.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrival is what WithArrival noted.
func Arrival(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(arrivalKey{}).(time.Time)
	return at, ok
}

// Reads lets calls for the same thing share reads of it. A call never gets what was read, even in part, before it
// came: while a read is under way that began earlier, the calls that come wait for its end and then share the next one. So
// there are two at a time at most, one that runs and one that waits. A call that came a while ago, and waited for its turn
// elsewhere since, shares what was read meanwhile.
type Reads[K comparable, V any] struct {
	// clock is the one by which the API server notes when a request came.
	clock clock.PassiveClock

	mu               sync.Mutex
	running, waiting map[K]*read[V]
	// latest are the last reads that succeeded, of the last second or so.
	latest map[K]*read[V]
}

// read is one read, and what it found once done is closed.
type read[V any] struct {
	began time.Time
	done  chan struct{}
	value V
	err   error
}

// New makes Reads of which nobody has read anything yet.
func New[K comparable, V any]() *Reads[K, V] {
	return &Reads[K, V]{clock: clock.RealClock{}, running: map[K]*read[V]{}, waiting: map[K]*read[V]{}, latest: map[K]*read[V]{}}
}

// came is when the request of this context came, as far as it is known.
func (s *Reads[K, V]) came(ctx context.Context) time.Time {
	if at, ok := Arrival(ctx); ok {
		return at
	}
	if at, ok := genericapirequest.ReceivedTimestampFrom(ctx); ok {
		return at
	}
	return s.clock.Now()
}

// Do returns what fn finds. The call that begins a read runs it, and waits for it even if its own context ends.
func (s *Reads[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (V, error) {
	came := s.came(ctx)
	s.mu.Lock()
	if r := s.latest[key]; r != nil && r.began.After(came) {
		s.mu.Unlock()
		return r.value, r.err
	}
	r := s.running[key]
	if r == nil || !r.began.After(came) {
		r = s.waiting[key]
	}
	if r != nil {
		s.mu.Unlock()
		return r.wait(ctx)
	}
	own := &read[V]{done: make(chan struct{})}
	if before := s.running[key]; before != nil {
		s.waiting[key] = own
		s.mu.Unlock()
		<-before.done
		s.mu.Lock()
		delete(s.waiting, key)
	}
	own.began = s.clock.Now()
	s.running[key] = own
	s.mu.Unlock()
	s.run(ctx, key, own, fn)
	return own.value, own.err
}

func (r *read[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

func (s *Reads[K, V]) run(ctx context.Context, key K, r *read[V], fn func(context.Context) (V, error)) {
	r.err = context.Canceled // unless fn returns
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[key] == r {
			delete(s.running, key)
		}
		s.keep(key, r)
		close(r.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	r.value, r.err = fn(ctx)
}

// keep keeps what was found, and nothing that is old: there are as many as there were reads in the last second.
func (s *Reads[K, V]) keep(key K, r *read[V]) {
	for k, other := range s.latest {
		if s.clock.Since(other.began) > keepRead {
			delete(s.latest, k)
		}
	}
	delete(s.latest, key)
	if r.err == nil {
		s.latest[key] = r
	}
}
