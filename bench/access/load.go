package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// latencies are how long requests took.
type latencies []time.Duration

// constantRate sends n requests, one every 1/rate seconds, without waiting for responses. The time of a request
// begins when it should have been sent, so it includes the time that the request waits for others, in this program
// or in the server. The second result is how late the requests were sent, which is the part of this program.
func constantRate(ctx context.Context, rate, n int, send func(context.Context, int) error) (took, late latencies, err error) {
	took, late = make(latencies, n), make(latencies, n)
	interval := time.Second / time.Duration(rate)
	begin := time.Now().Add(10 * time.Millisecond)
	var group errgroup.Group
	for i := range n {
		intended := begin.Add(time.Duration(i) * interval)
		pause(time.Until(intended))
		group.Go(func() error {
			late[i] = time.Since(intended)
			err := send(ctx, i)
			took[i] = time.Since(intended)
			return err
		})
	}
	return took, late, group.Wait()
}

// oneAtATime sends n requests, each after the response to the one before it: nothing waits, so small differences
// show.
func oneAtATime(ctx context.Context, n int, send func(context.Context, int) error) (latencies, error) {
	took := make(latencies, n)
	for i := range n {
		begin := time.Now()
		if err := send(ctx, i); err != nil {
			return nil, err
		}
		took[i] = time.Since(begin)
	}
	return took, nil
}

// quantile returns the quantile by nearest rank.
func (l latencies) quantile(q float64) time.Duration {
	sorted := slices.Clone(l)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (l latencies) median() time.Duration { return l.quantile(0.5) }
func (l latencies) p99() time.Duration    { return l.quantile(0.99) }
