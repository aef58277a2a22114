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

	"github.com/gardenlite/gardenlite/bench/harness"
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
	return harness.Measure("a first shoot", runs,
		harness.Case{Name: "kube-apiserver with etcd, until /readyz", Run: func(int) (time.Duration, error) {
			took, _, err := harness.MeasureBaseline(ctx, baseline)
			return took, err
		}},
		harness.Case{Name: "first shoot, from apply to Succeeded and /readyz", AtMost: 4 * time.Second,
			Run: func(int) (time.Duration, error) { return firstShoot(ctx) }})
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
	fmt.Println()
	harness.Row("a bare kube-apiserver, resident", harness.MB(float64(bare)))
	harness.Row("landscape with one seed, resident", harness.MB(without))
	before, one := 0, 0.0
	for _, count := range []int{1, 5, 10} {
		if err := l.createMany(ctx, "running", before, count, false); err != nil {
			return err
		}
		now, err := l.Memory(ctx)
		if err != nil {
			return err
		}
		if before = count; count == 1 {
			one = now
			harness.Row("with a running shoot of two nodes, more", harness.MB(now-without))
			continue
		}
		each := (now - one) / float64(count-1)
		harness.Row(fmt.Sprintf("with %d, more for each further one", count), harness.MB(each),
			harness.Ratio(each, float64(bare)),
			harness.Limit(each <= 50e6, "at most 50 MB"))
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
	fmt.Println()
	each := (with - without) / float64(count)
	harness.Row(fmt.Sprintf("%d shoots created hibernated, until all have succeeded", count), harness.MS(took))
	harness.Row("each of them: resident", harness.MB(each), harness.Limit(each <= 1e6, "at most 1 MB"))
	return nil
}
