package sharedreads

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// TestSharedReads: a call that comes while a read is under way gets what the next one finds, and shares it.
func TestSharedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, now, begun := New[string, int64](), atomic.Int64{}, atomic.Int64{}
		goOn := make(chan struct{})
		read := func(context.Context) (int64, error) {
			begun.Add(1)
			found := now.Load()
			<-goOn
			return found, nil
		}
		var all sync.WaitGroup
		call := func(want int64) {
			all.Go(func() {
				if got, err := reads.Do(t.Context(), "x", read); got != want || err != nil {
					t.Errorf("%d, %v; want %d", got, err, want)
				}
			})
			synctest.Wait()
		}
		call(0)
		now.Store(1)
		for range 100 {
			call(1)
		}
		if begun.Load() != 1 {
			t.Errorf("%d reads", begun.Load())
		}
		goOn <- struct{}{}
		synctest.Wait()
		now.Store(2)
		call(2)
		goOn <- struct{}{}
		synctest.Wait()
		goOn <- struct{}{}
		all.Wait()
		if begun.Load() != 3 {
			t.Errorf("%d reads", begun.Load())
		}
		if len(reads.running)+len(reads.waiting)+len(reads.latest) > 1 { // the latest one is kept for a second
			t.Error("something is left")
		}
	})
}

// TestGivenUp: who gives up does not take the read from others, and who waits for others can give up.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, goOn := New[string, int](), make(chan struct{})
		read := func(ctx context.Context) (int, error) { <-goOn; return 1, ctx.Err() }
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 { // the first one reads, the second one leads those that wait
			all.Go(func() {
				_, err := reads.Do(ctx, "x", read)
				if gaveUp := errors.Is(err, context.Canceled); gaveUp != (i == 2) {
					t.Errorf("call %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		all.Go(func() {
			if got, err := reads.Do(t.Context(), "x", read); got != 1 || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(goOn)
		all.Wait()
	})
}

// TestCameBefore: who came before a read began gets what it found, during it and for a second afterwards; nobody else does.
func TestCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, now, begun, goOn := New[string, int64](), atomic.Int64{}, atomic.Int64{}, make(chan struct{})
		read := func(context.Context) (int64, error) {
			begun.Add(1)
			found := now.Load()
			<-goOn
			return found, nil
		}
		var all sync.WaitGroup
		call := func(came time.Time, want int64) {
			all.Go(func() {
				if got, err := reads.Do(genericapirequest.WithReceivedTimestamp(t.Context(), came), "x", read); got != want || err != nil {
					t.Errorf("came %s: %d, %v; want %d", came, got, err, want)
				}
			})
			synctest.Wait()
		}
		early := time.Now()
		time.Sleep(time.Millisecond)
		call(time.Now(), 0) // begins a read
		call(early, 0)      // shares it
		at := time.Now()    // no earlier than the read
		now.Store(1)
		goOn <- struct{}{}
		all.Wait()
		call(early, 0)
		time.Sleep(time.Millisecond)
		call(at, 1)
		goOn <- struct{}{}
		all.Wait()
		if begun.Load() != 2 {
			t.Errorf("%d reads", begun.Load())
		}
		time.Sleep(2 * keepRead)
		all.Go(func() { _, _ = reads.Do(t.Context(), "y", read) })
		goOn <- struct{}{}
		all.Wait()
		if len(reads.latest) != 1 || reads.latest["y"] == nil {
			t.Errorf("what was read of others is kept: %v", reads.latest)
		}
	})
}

// TestFailedReadIsNotKept: who comes after a read that failed reads again.
func TestFailedReadIsNotKept(t *testing.T) {
	reads, early := New[string, int](), time.Now().Add(-time.Minute)
	for i, want := range []error{errors.New("no"), nil} {
		got, err := reads.Do(genericapirequest.WithReceivedTimestamp(t.Context(), early), "x", func(context.Context) (int, error) { return i, want })
		if err != want || err == nil && got != 1 {
			t.Errorf("call %d: %d, %v", i, got, err)
		}
	}
}
