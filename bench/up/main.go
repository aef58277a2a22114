// Command up measures how long a landscape takes to start, cold and warm, with a bare kube-apiserver with etcd in
// the same run as the baseline, and prints the ratio.
//
//	go run ./up -gardenlite ../bin/gardenlite -baseline ../bin/baseline -runs 5
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

func main() {
	baseline := flag.String("baseline", "../bin/baseline", "folder with kube-apiserver and etcd")
	runs := flag.Int("runs", 5, "how many of each; medians are printed")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *baseline, *runs) })
}

func bench(ctx context.Context, baseline string, runs int) error {
	var base, cold, warm, stop, seeded, seededWarm []time.Duration
	var last, lastSeeded sample
	for i := range runs {
		took, _, err := harness.MeasureBaseline(ctx, baseline)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base = append(base, took)
		first, second, err := measureTwice(ctx, 0)
		if err != nil {
			return err
		}
		cold, warm, stop = append(cold, first.ready), append(warm, second.ready), append(stop, first.stop, second.stop)
		last = first
		seedFirst, seedSecond, err := measureTwice(ctx, 1)
		if err != nil {
			return fmt.Errorf("with a seed: %w", err)
		}
		seeded, seededWarm = append(seeded, seedFirst.ready), append(seededWarm, seedSecond.ready)
		lastSeeded = seedFirst
		fmt.Printf("run %d: kube-apiserver with etcd %s, cold %s, warm %s, with a seed cold %s, warm %s\n",
			i+1, harness.MS(took), harness.MS(first.ready), harness.MS(second.ready), harness.MS(seedFirst.ready), harness.MS(seedSecond.ready))
	}
	b, c, w, with := harness.Median(base), harness.Median(cold), harness.Median(warm), harness.Median(seeded)
	fmt.Printf("\n%-52s %9s %8s\n", fmt.Sprintf("median of %d", runs), "", "ratio")
	fmt.Printf("%-52s %9s %8s\n", "kube-apiserver with etcd, until /readyz", harness.MS(b), "1.00")
	fmt.Printf("%-52s %9s %8.2f  (to be at most 1.20)\n", "gardenlite up --seeds 0, cold, until all can be listed",
		harness.MS(c), float64(c)/float64(b))
	fmt.Printf("%-52s %9s %8.2f  (of cold; to be at most 0.80)\n", "gardenlite up --seeds 0, warm restart",
		harness.MS(w), float64(w)/float64(c))
	fmt.Printf("%-52s %9s %8.2f  (to be at most 1.50)\n", "gardenlite up, cold, until its Seed is ready", harness.MS(with),
		float64(with)/float64(b))
	fmt.Printf("%-52s %9s %8.2f\n", "gardenlite up, warm restart", harness.MS(harness.Median(seededWarm)),
		float64(harness.Median(seededWarm))/float64(b))
	fmt.Printf("%-52s %9s\n", "stop (--seeds 0)", harness.MS(harness.Median(stop)))
	report("--seeds 0", last)
	report("with one seed (to be at most 450 MB resident)", lastSeeded)
	return nil
}

func report(what string, s sample) {
	fmt.Printf("\nlast cold start %s: %d MB resident, %d MB live heap, %d goroutines\n",
		what, s.status.Memory.Resident/1e6, s.status.Memory.LiveHeap/1e6, s.status.Goroutines)
	for _, phase := range s.status.Phases {
		fmt.Printf("  %-44s %9s\n", phase.Name, harness.MS(phase.Took))
	}
}

// measureTwice measures the first start of a new landscape, and the second one.
func measureTwice(ctx context.Context, seeds int) (first, second sample, err error) {
	l, err := harness.NewLandscape(fmt.Sprintf("--seeds=%d", seeds))
	if err != nil {
		return first, second, err
	}
	defer l.Remove()
	if first, err = measureUp(ctx, l, seeds); err != nil {
		return first, second, fmt.Errorf("cold start: %w", err)
	}
	if second, err = measureUp(ctx, l, seeds); err != nil {
		return first, second, fmt.Errorf("warm restart: %w", err)
	}
	return first, second, nil
}

type sample struct {
	ready, stop time.Duration
	status      harness.Status
}

// measureUp starts a landscape, and waits until every resource of the Gardener API can be listed and, with a seed,
// the Seed is ready.
func measureUp(ctx context.Context, l *harness.Landscape, seeds int) (s sample, err error) {
	begin := time.Now()
	if err := l.Launch(); err != nil {
		return s, err
	}
	var garden *gardenClient
	err = harness.Poll(ctx, time.Minute, func() (bool, error) {
		if l.Process.Ended() {
			return false, fmt.Errorf("gardenlite ended: %s", l.Process.Log())
		}
		if garden == nil {
			garden = openGarden(l.Dir, l.Process.PID())
		}
		return garden != nil && (seeds == 0 || garden.seedReady("local")) && garden.listAll(), nil
	})
	if err != nil {
		return s, err
	}
	s.ready = time.Since(begin)
	if s.status, err = l.Status(ctx); err != nil {
		return s, err
	}
	begin = time.Now()
	l.Process.End()
	s.stop = time.Since(begin)
	return s, nil
}
