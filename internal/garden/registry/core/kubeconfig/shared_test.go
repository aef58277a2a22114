package kubeconfig

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestSharedReads: a call that comes while a read is under way gets what the next one finds, and shares it.
func TestSharedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, now, begun := newSharedReads[string, int64](), atomic.Int64{}, atomic.Int64{}
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
				if got, err := reads.do(t.Context(), "x", read); got != want || err != nil {
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
		if len(reads.running)+len(reads.waiting) > 0 {
			t.Error("something is left")
		}
	})
}

// TestGivenUp: who gives up does not take the read from others, and who waits for others can give up.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, goOn := newSharedReads[string, int](), make(chan struct{})
		read := func(ctx context.Context) (int, error) { <-goOn; return 1, ctx.Err() }
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 { // the first one reads, the second one leads those that wait
			all.Go(func() {
				_, err := reads.do(ctx, "x", read)
				if gaveUp := errors.Is(err, context.Canceled); gaveUp != (i == 2) {
					t.Errorf("call %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		all.Go(func() {
			if got, err := reads.do(t.Context(), "x", read); got != 1 || err != nil {
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
