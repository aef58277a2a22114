package kubeconfig

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeys: keys are made ahead once one was asked for, a while after that; each is given away once, and none is left at the end.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		var failing atomic.Bool
		failure := errors.New("no key")
		k := &keys{most: 3, make: func() (newKey, error) {
			if failing.Load() {
				return newKey{}, failure
			}
			return newKey{pem: []byte{byte(made.Add(1))}}, nil
		}}
		seen := map[byte]bool{}
		take := func() {
			t.Helper()
			key, err := k.take()
			if err != nil || seen[key.pem[0]] {
				t.Fatalf("key %v, %v; those before: %v", key.pem, err, seen)
			}
			seen[key.pem[0]] = true
		}
		expect := func(wantMade int32, wantReady int) {
			t.Helper()
			synctest.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			if made.Load() != wantMade || len(k.ready) != wantReady {
				t.Fatalf("%d are made and %d ready, not %d and %d", made.Load(), len(k.ready), wantMade, wantReady)
			}
		}
		expect(0, 0)
		take()
		take()
		expect(2, 0)
		time.Sleep(keysAfter)
		expect(5, 3)
		for range 4 {
			take()
		}
		expect(6, 0)
		failing.Store(true)
		time.Sleep(keysAfter)
		expect(6, 0)
		if _, err := k.take(); !errors.Is(err, failure) {
			t.Fatalf("%v", err)
		}
		failing.Store(false)
		time.Sleep(keysAfter)
		expect(9, 3)
		take()
		k.close()
		time.Sleep(keysAfter)
		expect(9, 0)
		take()
		time.Sleep(keysAfter)
		expect(10, 0)
	})
}
