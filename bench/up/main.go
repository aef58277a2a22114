// Command up measures how long a landscape takes to start, cold and warm, without a seed and with one; how much memory
// it has then; and how much processor time it takes at rest. The baseline in the same run are the three servers of a
// garden, with defaults: etcd, kube-apiserver and gardener-apiserver.
//
//	go run ./up -gardenlite ../bin/gardenlite -baseline ../bin/baseline -runs 5
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

// series are the measurements of one kind of start. A limit is the largest ratio to the baseline; 0 is none.
type series struct {
	name                                   string
	startLimit, residentLimit, atRestLimit float64

	starts   []time.Duration
	resident []uint64
	atRest   time.Duration
}

// settle is the time after a start until its last work is done: from then on, memory and processor time are measured.
const settle = 15 * time.Second

func main() {
	baseline := flag.String("baseline", "../bin/baseline", "folder with etcd, kube-apiserver and gardener-apiserver")
	runs := flag.Int("runs", 5, "how many of each; medians are printed")
	rest := flag.Duration("rest", time.Minute, "how long the processor time at rest is measured, in the last run")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *baseline, *runs, *rest) })
}

func bench(ctx context.Context, baseline string, runs int, rest time.Duration) error {
	servers := &series{name: "etcd, kube-apiserver and gardener-apiserver"}
	landscapes := []struct {
		seeds      int
		cold, warm *series
	}{
		{1, &series{name: "gardenlite up, cold", startLimit: 0.60, residentLimit: 0.72, atRestLimit: 1.3},
			&series{name: "gardenlite up, warm", startLimit: 0.36}},
		{0, &series{name: "gardenlite up --seeds 0, cold", startLimit: 0.28, residentLimit: 0.45},
			&series{name: "gardenlite up --seeds 0, warm"}},
	}
	for i := range runs {
		idle := time.Duration(0)
		if i == runs-1 {
			idle = rest
		}
		if err := harness.WithGardener(ctx, baseline, gardenResources, func(s harness.BaselineServer) error {
			return servers.add(ctx, s.Took, s.Memory, s.CPU, idle)
		}); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		for _, l := range landscapes {
			if err := startTwice(ctx, l.seeds, l.cold, l.warm, idle); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%-44s %-24s %-24s %-24s\n", fmt.Sprintf("median of %d, ratio", runs), "start", "resident", "CPU in a minute at rest")
	servers.print(servers)
	for _, l := range landscapes {
		l.cold.print(servers)
		l.warm.print(servers)
	}
	return nil
}

// add adds a measurement, and the time at rest unless idle is 0.
func (s *series) add(ctx context.Context, took time.Duration, resident func() uint64, cpu func() time.Duration,
	idle time.Duration) error {
	if err := harness.Pause(ctx, settle); err != nil {
		return err
	}
	s.starts, s.resident = append(s.starts, took), append(s.resident, resident())
	fmt.Printf("%-44s %9s %8d MB\n", s.name, harness.MS(took), resident()/1e6)
	before := cpu()
	if err := harness.Pause(ctx, idle); err != nil || idle == 0 {
		return err
	}
	s.atRest = time.Duration(float64(cpu()-before) * float64(time.Minute) / float64(idle))
	return nil
}

func (s *series) print(baseline *series) {
	slices.Sort(s.resident)
	resident, least := s.resident[len(s.resident)/2], baseline.resident[len(baseline.resident)/2]
	start, atRest := harness.Median(s.starts), s.atRest
	fmt.Printf("%-44s %-24s %-24s %-24s\n", s.name,
		harness.MS(start)+ratio(float64(start), float64(harness.Median(baseline.starts)), s.startLimit),
		fmt.Sprintf("%d MB", resident/1e6)+ratio(float64(resident), float64(least), s.residentLimit),
		harness.MS(atRest)+ratio(float64(atRest), float64(baseline.atRest), s.atRestLimit))
}

// ratio formats a ratio, with its limit if there is one.
func ratio(value, baseline, limit float64) string {
	if value == 0 || baseline == 0 {
		return ""
	}
	text := fmt.Sprintf(", %.2f", value/baseline)
	if limit > 0 {
		text += fmt.Sprintf(" (<= %.2f)", limit)
	}
	return text
}

// startTwice measures the first start of a new landscape, and the second one.
func startTwice(ctx context.Context, seeds int, cold, warm *series, idle time.Duration) error {
	l, err := harness.NewLandscape(fmt.Sprintf("--seeds=%d", seeds))
	if err != nil {
		return err
	}
	defer l.Remove()
	if err := start(ctx, l, seeds, cold, idle); err != nil {
		return fmt.Errorf("%s: %w", cold.name, err)
	}
	if err := start(ctx, l, seeds, warm, 0); err != nil {
		return fmt.Errorf("%s: %w", warm.name, err)
	}
	return nil
}

// start starts a landscape, waits until every resource of the Gardener API can be listed and, with a seed, the Seed is
// ready, and stops it again.
func start(ctx context.Context, l *harness.Landscape, seeds int, s *series, idle time.Duration) error {
	begin := time.Now()
	if err := l.Launch(); err != nil {
		return err
	}
	defer l.Process.End()
	var garden *gardenClient
	if err := harness.Poll(ctx, time.Minute, func() (bool, error) {
		if l.Process.Ended() {
			return false, fmt.Errorf("gardenlite ended: %s", l.Process.Log())
		}
		if garden == nil {
			garden = openGarden(l.Dir, l.Process.PID())
		}
		return garden != nil && (seeds == 0 || garden.seedReady("local")) &&
			harness.ListAll(garden.client, garden.host, gardenResources), nil
	}); err != nil {
		return err
	}
	return s.add(ctx, time.Since(begin), l.Process.Resident, l.Process.CPU, idle)
}
