package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// comparison compares one kind of requests in both landscapes.
type comparison struct {
	name string
	n    int
	send func(ctx context.Context, a *actors, i int) error

	with, without latencies
	ratios        []float64 // of the medians, by turn
}

// measureOrdinary counts what the webhooks do while an ordinary user sends requests, and compares how long these take with a
// landscape without admission controller.
func measureOrdinary(ctx context.Context, c config, with *actors) error {
	without, err := startActors(ctx, c.shoots, "--controllers=-admission-controller")
	if err != nil {
		return err
	}
	defer without.Remove()
	created := 0
	comparisons := []*comparison{
		{name: "get, allowed by RBAC", n: c.ordinary, send: func(ctx context.Context, a *actors, i int) error {
			return a.developer.get(ctx, ownObject(i, c.shoots))
		}},
		{name: "get, refused", n: c.ordinary, send: func(ctx context.Context, a *actors, i int) error {
			return a.stranger.send(ctx, http.MethodGet, ownObject(i, c.shoots), nil, http.StatusForbidden)
		}},
		{name: "create, allowed by RBAC", n: c.ordinary / 4, send: func(ctx context.Context, a *actors, _ int) error {
			created++
			return a.developer.create(ctx, objects+"/configmaps", configMap(fmt.Sprintf("ordinary-%d", created)))
		}},
	}
	fmt.Printf("\nrequests of ordinary users, one at a time, in %d turns: with the admission controller, and without it\n", c.turns)
	for _, r := range comparisons {
		before, err := with.counters(ctx)
		if err != nil {
			return err
		}
		for turn := range c.turns {
			if err := r.turn(ctx, c, turn, with, without); err != nil {
				return err
			}
		}
		after, err := with.counters(ctx)
		if err != nil {
			return err
		}
		r.print(after.minus(before))
	}
	return nil
}

// turn sends the requests to both landscapes, and alternates which one is first.
func (r *comparison) turn(ctx context.Context, c config, turn int, with, without *actors) (err error) {
	pair := [2]*actors{with, without}
	var took [2]latencies
	for i := range pair {
		at := (i + turn) % len(pair)
		send := func(ctx context.Context, i int) error { return r.send(ctx, pair[at], i) }
		if took[at], err = oneAtATime(ctx, (r.n+c.turns-1)/c.turns, send); err != nil {
			return err
		}
	}
	r.with, r.without = append(r.with, took[0]...), append(r.without, took[1]...)
	r.ratios = append(r.ratios, float64(took[0].median())/float64(took[1].median()))
	return nil
}

func (r *comparison) print(counted metrics) {
	median, p99 := float64(r.with.median())/float64(r.without.median()), float64(r.with.p99())/float64(r.without.p99())
	fmt.Printf("  %-46s %9s   %9s   ratio %.2f (by turn %.2f to %.2f)\n", fmt.Sprintf("%d %s: median", len(r.with), r.name),
		harness.MS(r.with.median()), harness.MS(r.without.median()), median, slices.Min(r.ratios), slices.Max(r.ratios))
	fmt.Printf("  %-46s %9s   %9s   ratio %.2f\n", "  p99", harness.MS(r.with.p99()), harness.MS(r.without.p99()), p99)
	evaluations, decisions := counted.sum(webhookEvaluations)+counted.histogram(admissionDuration, restriction).count,
		counted.sum(authorizerDecisions)+counted.sum(restrictionDecisions)
	mark := " "
	if evaluations+decisions > 0 {
		mark = "!"
	}
	fmt.Printf("  %-46s %9.0f %s (to be 0)\n", "  webhook calls", max(evaluations, decisions), mark)
	printExcluded("authorizer", counted.sum(conditionExcluded), counted.histogram(conditionDuration))
	printExcluded("restriction", counted.sum(admissionExcluded, restriction), counted.histogram(admissionCondition, restriction))
}

// printExcluded prints how many requests the match condition kept away from a webhook, and what the condition took
// for each: that is all that the webhook costs then.
func printExcluded(webhook string, n float64, condition histogram) {
	if n > 0 {
		fmt.Printf("  %-46s %9.0f   requests, %.1f µs each\n", "  kept away from the "+webhook, n, condition.mean().Seconds()*1e6)
	}
}
