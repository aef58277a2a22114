package graphsync

import (
	"context"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"
)

// longestSleep limits how late an expiration is noticed after the machine was suspended or its clock was set: timers
// use the monotonic clock, but certificates expire by the wall clock.
const longestSleep = time.Minute

// expiry calls a function when the client certificate of a seed has expired.
type expiry struct {
	clock clock.Clock
	wake  chan struct{}

	mu  sync.Mutex
	due map[string]time.Time // by seed; only those in the future
}

func newExpiry(c clock.Clock) *expiry {
	return &expiry{clock: c, wake: make(chan struct{}, 1), due: map[string]time.Time{}}
}

// watch records when the client certificate of a seed expires. It replaces the time that was recorded before.
func (e *expiry) watch(seed *gardencorev1beta1.Seed) {
	var due time.Time
	if expires := seed.Status.ClientCertificateExpirationTimestamp; expires != nil {
		// Times in the API are whole seconds: one second later, the certificate has expired by any comparison.
		due = expires.Add(time.Second)
	}
	if !due.After(e.clock.Now()) {
		e.forget(seed.Name)
		return
	}
	e.mu.Lock()
	e.due[seed.Name] = due
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *expiry) forget(seed string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.due, seed)
}

func (e *expiry) run(ctx context.Context, expired func(seed string)) {
	for {
		now, next := e.clock.Now(), longestSleep
		var seeds []string
		e.mu.Lock()
		for seed, at := range e.due {
			if at.After(now) {
				next = min(next, at.Sub(now))
				continue
			}
			delete(e.due, seed)
			seeds = append(seeds, seed)
		}
		e.mu.Unlock()
		for _, seed := range seeds {
			expired(seed)
		}
		timer := e.clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-e.wake:
			timer.Stop()
		case <-timer.C():
		}
	}
}
