package shootkubeconfig

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// generator generates numbered keys.
type generator struct {
	// takes is how long it takes to make a key.
	takes time.Duration

	mu           sync.Mutex
	made         int
	running, max int
	err          error
}

func (g *generator) generate() (privateKey, error) {
	g.mu.Lock()
	g.running++
	g.max = max(g.max, g.running)
	g.mu.Unlock()
	time.Sleep(g.takes)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.err != nil {
		return privateKey{}, g.err
	}
	g.made++
	return privateKey{pem: []byte{byte(g.made), byte(g.made >> 8)}}, nil
}

// taken checks that no key is given away twice.
type taken struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (s *taken) add(t *testing.T, key privateKey) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[string(key.pem)] {
		t.Errorf("the key %v is given away twice", key.pem)
	}
	s.keys[string(key.pem)] = true
}

// TestKeyPool: some time after the start, requests get keys that are ready, and each of them only once.
func TestKeyPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, seen := &generator{takes: time.Second}, &taken{keys: map[string]bool{}}
		p := newKeyPool(g.generate)
		take := func(wanted time.Duration) {
			t.Helper()
			begin := time.Now()
			key, err := p.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != wanted {
				t.Errorf("a key took %s, not %s", took, wanted)
			}
			seen.add(t, key)
		}
		take(time.Second) // right after the start
		time.Sleep(fillDelay + time.Hour)
		synctest.Wait()
		if g.made != 1+readyKeys+1 || len(p.ready) != readyKeys {
			t.Fatalf("%d keys are made and %d are ready", g.made, len(p.ready))
		}
		for range readyKeys {
			take(0)
		}
		time.Sleep(time.Minute)
		take(0)
		p.stop()
		made := g.made
		time.Sleep(time.Hour)
		if g.made != made {
			t.Errorf("%d keys are made by a pool that was stopped", g.made-made)
		}
		for len(p.ready) > 0 {
			take(0)
		}
		take(time.Second)
		p.stop()
	})
}

// TestManyKeysAtOnce checks that concurrent requests generate at most one key for each processor at a time, and that
// requests that wait too long are told to try again, and then succeed.
func TestManyKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, seen := &generator{takes: 10 * time.Second}, &taken{keys: map[string]bool{}}
		p := newKeyPool(g.generate)
		var all sync.WaitGroup
		retries := 0
		for range 500 {
			all.Go(func() {
				key, err := p.take(t.Context())
				for err != nil {
					seconds, ok := apierrors.SuggestsClientDelay(err)
					if !apierrors.IsTooManyRequests(err) || !ok {
						t.Errorf("an error that does not say when to try again: %v", err)
						return
					}
					seen.mu.Lock()
					retries++
					seen.mu.Unlock()
					time.Sleep(time.Duration(seconds) * time.Second)
					key, err = p.take(t.Context())
				}
				seen.add(t, key)
			})
		}
		all.Wait()
		p.stop()
		if limit := max(2, runtime.GOMAXPROCS(0)); g.max > limit || len(seen.keys) != 500 {
			t.Errorf("%d keys are made at a time, at most %d are allowed; there are %d keys", g.max, limit, len(seen.keys))
		}
		if retries == 0 {
			t.Error("no request had to wait for too long: the test shows nothing")
		}
	})
}

// TestKeyErrors checks that an error affects only one request, and that a cancelled request does not wait.
func TestKeyErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &generator{err: errors.New("no key")}
		p := newKeyPool(g.generate)
		defer p.stop()
		time.Sleep(fillDelay + time.Minute)
		synctest.Wait()
		if _, err := p.take(t.Context()); !errors.Is(err, g.err) {
			t.Error(err)
		}
		g.err = nil
		if _, err := p.take(t.Context()); err != nil {
			t.Error(err)
		}
		for range cap(p.generating) {
			p.generating <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.take(ctx); !apierrors.IsTooManyRequests(err) {
			t.Error(err)
		}
	})
}
