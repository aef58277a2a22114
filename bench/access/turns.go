package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// mostOthers is how many CPUs other programs may keep busy in a quiet turn: more is enough to hold up one request in
// a hundred.
const mostOthers = 0.05

// turn is a part of a load. A busy moment of the machine affects some turns and not others.
type turn struct {
	took, late latencies
	counted    metrics
	// others is how many CPUs other programs kept busy.
	others float64
}

// newTurn sends requests at the constant rate, and measures them.
func newTurn(ctx context.Context, c config, a *actors, send func(context.Context, int) error) (t turn, err error) {
	before, err := a.counters(ctx)
	if err != nil {
		return t, err
	}
	begin, cpu := time.Now(), readCPU()
	t.took, t.late, err = constantRate(ctx, c.rate, c.perTurn(), send)
	if err != nil {
		return t, err
	}
	lasted, busy := time.Since(begin), readCPU().minus(cpu)
	after, err := a.counters(ctx)
	if err != nil {
		return t, err
	}
	t.counted = after.minus(before)
	t.others = max(0, (busy.all-busy.own).Seconds()-t.counted.sum(cpuSeconds)) / lasted.Seconds()
	return t, nil
}

// load has the turns of one kind of requests.
type load []turn

func (r load) took() (all latencies) {
	for _, t := range r {
		all = append(all, t.took...)
	}
	return all
}

func (r load) counted() metrics {
	all := metrics{}
	for _, t := range r {
		all = all.plus(t.counted)
	}
	return all
}

// quiet returns the turns in which the machine had nothing else to do.
func (r load) quiet() (quiet load) {
	for _, t := range r {
		if t.others < mostOthers {
			quiet = append(quiet, t)
		}
	}
	return quiet
}

func (r load) print(what string) {
	took, late, others := r.took(), latencies{}, 0.0
	for _, t := range r {
		late = append(late, t.late...)
		others += t.others / float64(len(r))
	}
	fmt.Printf("  %-46s %9s   %9s  p99\n", what, harness.MS(took.median()), harness.MS(took.p99()))
	fmt.Printf("    %.2f ms of the server's CPU each; sent late by %s, p99 %s; other programs kept %.1f CPUs busy\n",
		1000*r.counted().sum(cpuSeconds)/float64(len(took)), harness.MS(late.median()), harness.MS(late.p99()), others)
	if quiet := r.quiet(); len(quiet) > 0 && len(quiet) < len(r) {
		fmt.Printf("  %-46s %9s   %9s  p99\n", fmt.Sprintf("  in the %d quiet turns", len(quiet)), harness.MS(quiet.took().median()),
			harness.MS(quiet.took().p99()))
	}
}

func printDifference(what string, a, b load) {
	fmt.Printf("  %-46s %9s   %9s\n", what, harness.MS(a.took().median()-b.took().median()), harness.MS(a.took().p99()-b.took().p99()))
}
