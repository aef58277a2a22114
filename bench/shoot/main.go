// Command shoot measures how long a first shoot takes, with a bare kube-apiserver with etcd as the baseline, what
// running shoots cost, and what shoots cost that are created hibernated, all in one run.
//
//	go run ./shoot -gardenlite ../bin/gardenlite -baseline ../bin/baseline
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
	runs := flag.Int("runs", 3, "how many first shoots; the median is printed")
	hibernated := flag.Int("hibernated", 1000, "how many shoots that are hibernated from birth")
	part := flag.String("part", "", "only first, running or hibernated; all of them if empty")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *baseline, *part, *runs, *hibernated) })
}

func bench(ctx context.Context, baseline, part string, runs, hibernated int) error {
	parts := []struct {
		name string
		run  func() error
	}{
		{"first", func() error { return first(ctx, baseline, runs) }},
		{"running", func() error { return running(ctx, baseline) }},
		{"hibernated", func() error { return asleep(ctx, hibernated) }},
	}
	known := part == ""
	for _, p := range parts {
		if part != "" && part != p.name {
			continue
		}
		known = true
		if err := p.run(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if !known {
		return fmt.Errorf("there is no part %q: say first, running or hibernated", part)
	}
	return nil
}

// first prints how long a first shoot takes.
func first(ctx context.Context, baseline string, runs int) error {
	var base, shoots []time.Duration
	for i := range runs {
		took, _, err := harness.MeasureBaseline(ctx, baseline)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		shoot, err := firstShoot(ctx)
		if err != nil {
			return err
		}
		base, shoots = append(base, took), append(shoots, shoot)
		fmt.Printf("run %d: kube-apiserver with etcd %s, first shoot %s\n", i+1, harness.MS(took), harness.MS(shoot))
	}
	b, f := harness.Median(base), harness.Median(shoots)
	fmt.Printf("\n%-60s %9s %8s\n", fmt.Sprintf("median of %d", runs), "", "ratio")
	fmt.Printf("%-60s %9s %8s\n", "kube-apiserver with etcd, until /readyz", harness.MS(b), "1.00")
	fmt.Printf("%-60s %9s %8.2f  (to be at most 4000 ms)\n", "first shoot, from apply to Succeeded and /readyz",
		harness.MS(f), float64(f)/float64(b))
	return nil
}

func firstShoot(ctx context.Context) (time.Duration, error) {
	l, err := startLandscape(ctx)
	if err != nil {
		return 0, err
	}
	defer l.Remove()
	begin := time.Now()
	if err := l.create(ctx, "first", false); err != nil {
		return 0, err
	}
	if err := l.answers(ctx, "first"); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}

// running prints what 1, 5 and 10 running shoots cost.
func running(ctx context.Context, baseline string) error {
	_, bare, err := harness.MeasureBaseline(ctx, baseline)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	l, err := startLandscape(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	without, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-60s %9s %9s\n", "running shoots with two nodes", "resident", "each")
	fmt.Printf("%-60s %6d MB\n", "a bare kube-apiserver", bare/1e6)
	fmt.Printf("%-60s %6d MB\n", "none, with one seed", without/1e6)
	before, one := 0, uint64(0)
	for _, count := range []int{1, 5, 10} {
		if err := l.createMany(ctx, "running", before, count, false); err != nil {
			return err
		}
		now, err := l.Memory(ctx)
		if err != nil {
			return err
		}
		if count == 1 {
			one = now
			fmt.Printf("%-60s %6d MB %6.1f MB\n", "1", now/1e6, float64(now-without)/1e6)
		} else {
			each := (float64(now) - float64(one)) / float64(count-1) / 1e6
			fmt.Printf("%-60s %6d MB %6.1f MB, %.2f of a bare one (each further one to be at most 50 MB)\n", fmt.Sprint(count),
				now/1e6, each, each*1e6/float64(bare))
		}
		before = count
	}
	return nil
}

// asleep prints what shoots cost that are created hibernated.
func asleep(ctx context.Context, count int) error {
	if count == 0 {
		return nil
	}
	l, err := startLandscape(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	without, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := l.createMany(ctx, "asleep", 0, count, true); err != nil {
		return err
	}
	took := time.Since(begin)
	with, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d shoots hibernated from birth: there after %s; %.2f MB resident each (to be at most 1)\n",
		count, took.Round(time.Second), (float64(with)-float64(without))/float64(count)/1e6)
	return nil
}

// createMany creates shoots until there are count, eight at a time, and waits until all have succeeded.
func (l *landscape) createMany(ctx context.Context, prefix string, from, count int, hibernated bool) error {
	if err := harness.InParallel(ctx, 8, count-from, func(ctx context.Context, i int) error {
		return l.create(ctx, fmt.Sprintf("%s%d", prefix, from+i), hibernated)
	}); err != nil {
		return err
	}
	return harness.Poll(ctx, 20*time.Minute, func() (bool, error) { return l.succeeded(ctx, prefix) == count, nil })
}
