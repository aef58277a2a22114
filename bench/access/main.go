// Command access measures scoped access in a landscape with the real API server and the real certificates: what the
// authorization webhook adds to the requests of gardenlets, what the admission webhook adds to their creates, and that
// neither is called for the requests of ordinary users. The resource dependency graph alone is measured by the
// benchmarks in internal/authz/graph.
//
// Server, webhooks and this program share the machine, so whatever is compared is measured in turns, one request at a
// time. The command fails only when it cannot measure; numbers beyond their limits are marked.
//
//	go run ./access -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

func main() {
	shoots := flag.Int("shoots", 300, "how many Shoots; an even number")
	requests := flag.Int("requests", 3000, "how many requests of each kind")
	harness.Main(func(ctx context.Context) error { return bench(ctx, *shoots, *requests) })
}

func bench(ctx context.Context, shoots, requests int) error {
	if shoots < 2 || shoots%2 != 0 || requests < 1 {
		return errors.New("-shoots has to be even, and -requests positive")
	}
	a, err := startActors(ctx, shoots)
	if err != nil {
		return err
	}
	defer a.Remove()
	if err := a.check(ctx); err != nil {
		return fmt.Errorf("the webhook does not decide as it should: %w", err)
	}
	fmt.Printf("%d Shoots on %d seeds\n", shoots, len(seeds))
	for _, table := range []struct {
		title string
		cases []harness.Case // the first one is of the ordinary user
	}{
		{"get of a Secret or ConfigMap", []harness.Case{
			{Name: "ordinary user, allowed by RBAC", Run: harness.Timed(func(i int) error {
				return get(ctx, a.developer, a.object(i))
			})},
			{Name: "gardenlet, allowed by the webhook", Run: harness.Timed(func(i int) error {
				return get(ctx, a.gardenlet(i), a.object(i))
			})},
			{Name: "a review sent to the webhook itself", Run: harness.Timed(func(i int) error { return a.review(ctx, i) })},
		}},
		{"create of a ConfigMap of a shoot", []harness.Case{
			{Name: "ordinary user", Run: func(i int) (time.Duration, error) { return a.create(ctx, a.developer, i) }},
			{Name: "gardenlet, both webhooks", Run: func(i int) (time.Duration, error) {
				return a.create(ctx, a.gardenlet(i), i)
			}},
		}},
	} {
		all, err := a.callsDuring(ctx, func() error { return harness.Measure(table.title, requests, table.cases...) })
		if err != nil {
			return err
		}
		printCalls(all)
		all, err = a.callsDuring(ctx, func() error {
			for i := range requests {
				if _, err := table.cases[0].Run(i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		both := all[0].count + all[1].count
		harness.Row(fmt.Sprintf("calls of the webhooks for %d requests of the ordinary user", requests), fmt.Sprint(both),
			harness.Limit(both == 0, "none"))
	}
	return nil
}

// webhooks are the webhooks, with the histograms in which the API server measures them, and the least share of calls
// within 5 ms.
var webhooks = []struct {
	name, metric string
	labels       []string
	least        float64
}{
	{"authorization webhook", "apiserver_authorization_webhook_duration_seconds", nil, 0.99},
	{"admission webhook", "apiserver_admission_webhook_admission_duration_seconds",
		[]string{`name="seed-restriction.gardener.cloud"`}, 0},
}

// calls are the calls of one of the webhooks.
type calls struct{ count, seconds, within5ms float64 }

// callsDuring returns the calls of each webhook while a function runs.
func (a *actors) callsDuring(ctx context.Context, do func() error) ([]calls, error) {
	before, err := a.readCalls(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	all, err := a.readCalls(ctx)
	for i := range all {
		all[i].count -= before[i].count
		all[i].seconds -= before[i].seconds
		all[i].within5ms -= before[i].within5ms
	}
	return all, err
}

func (a *actors) readCalls(ctx context.Context) (all []calls, err error) {
	for _, webhook := range webhooks {
		var c calls
		if c.count, err = harness.Counter(ctx, a.Kube, webhook.metric+"_count", webhook.labels...); err != nil {
			return nil, err
		}
		if c.seconds, err = harness.Counter(ctx, a.Kube, webhook.metric+"_sum", webhook.labels...); err != nil {
			return nil, err
		}
		c.within5ms, err = harness.Counter(ctx, a.Kube, webhook.metric+"_bucket", append(webhook.labels, `le="0.005"`)...)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func printCalls(all []calls) {
	fmt.Println("as the API server sees it:")
	for i, c := range all {
		if c.count == 0 {
			continue
		}
		name, share, limit := webhooks[i].name, c.within5ms/c.count, ""
		if least := webhooks[i].least; least > 0 {
			limit = harness.Limit(share >= least, fmt.Sprintf("at least %.0f %%", 100*least))
		}
		harness.Row(name+": evaluations", fmt.Sprint(c.count))
		harness.Row(name+": mean", harness.MS(time.Duration(c.seconds/c.count*float64(time.Second))))
		harness.Row(name+": within 5 ms", fmt.Sprintf("%.2f %%", 100*share), limit)
	}
}
