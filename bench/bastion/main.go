// Command bastion measures Bastions: how long it takes from creating one to a prompt on the node, what 200 of them
// cost, how soon a session is cut when its Bastion has expired, and what 50 sessions move at once. In the same run,
// it measures a baseline for each: ConfigMaps in place of Bastions, and SSH servers of golang.org/x/crypto, one
// reached through the other, in place of machines.
//
//	go run ./bastion -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

type config struct {
	part                 string
	runs, many, sessions int
	expiring, bytes      int
}

func main() {
	var c config
	flag.StringVar(&c.part, "part", "", "one of prompts, many, throughput and expiry; all if it is empty")
	flag.IntVar(&c.runs, "runs", 20, "how often a prompt is waited for; the median is printed")
	flag.IntVar(&c.many, "many", 200, "how many bastions there are at once")
	flag.IntVar(&c.expiring, "expiring", 5, "how many bastions expire; the median is printed, and the slowest one")
	flag.IntVar(&c.sessions, "sessions", 50, "how many sessions move bytes at once")
	flag.IntVar(&c.bytes, "bytes", 10_000_000, "how many bytes each session moves, to the node and then from it")
	harness.Main(func(ctx context.Context) error { return bench(ctx, c) })
}

func bench(ctx context.Context, c config) error {
	servers, err := startPlainServers()
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	defer servers.stop()
	for _, part := range []struct {
		name  string
		flags []string
		run   func(context.Context, *landscape, *plainServers, config) error
	}{
		{"prompts", nil, prompts}, {"many", nil, many}, {"throughput", nil, throughput},
		{"expiry", []string{"--bastion-time-to-live=" + timeToLive.String()}, expiry},
	} {
		if c.part != "" && c.part != part.name {
			continue
		}
		l, err := startLandscape(ctx, part.flags...)
		if err != nil {
			return err
		}
		err = part.run(ctx, l, servers, c)
		l.Remove()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// header and row print a table: what was measured, its ratio to the baseline, and whether it is within its limit.
func header(title string) { fmt.Printf("\n%-66s %12s %8s\n", title, "", "ratio") }

func row(what, value string, ratio float64, limit string, met bool) {
	fmt.Printf("%-66s %12s %8.2f%s\n", what, value, ratio, verdict(limit, met))
}

func verdict(limit string, met bool) string {
	if limit == "" {
		return ""
	}
	return "  (to be " + limit + ": " + map[bool]string{true: "met", false: "NOT met"}[met] + ")"
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// prompts measures how long it takes from creating a Bastion to a prompt on the node.
func prompts(ctx context.Context, l *landscape, p *plainServers, c config) error {
	var base, took, ready []time.Duration
	for i := range c.runs {
		begin := time.Now()
		if err := l.configMap(ctx, fmt.Sprintf("prompt%d", i)); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		if err := p.route().prompt(); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base = append(base, time.Since(begin))

		begin = time.Now()
		b, err := l.newBastion(ctx, fmt.Sprintf("prompt%d", i))
		if err != nil {
			return err
		}
		ready = append(ready, time.Since(begin))
		if err := l.route(b).prompt(); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
		if err := l.deleteBastions(ctx, b); err != nil {
			return err
		}
	}
	header(fmt.Sprintf("median of %d", c.runs))
	m := harness.Median(base)
	row("a ConfigMap created and watched, and a prompt through two SSH servers", harness.MS(m), 1, "", false)
	row("a Bastion created and ready", harness.MS(harness.Median(ready)), ratio(harness.Median(ready), m), "", false)
	t := harness.Median(took)
	row("and a prompt on the node through it", harness.MS(t), ratio(t, m), "at most 1000 ms", t <= time.Second)
	return nil
}
