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

	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// The histograms of the API server.
const (
	authorization = "apiserver_authorization_webhook_duration_seconds"
	admission     = "apiserver_admission_webhook_admission_duration_seconds"
	restriction   = `name="seed-restriction.gardener.cloud"`
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
		title               string
		ordinary, gardenlet harness.Case
		others              []harness.Case
	}{
		{"get of a Secret or ConfigMap",
			harness.Case{Name: "ordinary user, allowed by RBAC", Run: harness.Timed(func(i int) error {
				return get(ctx, a.developer, a.object(i))
			})},
			harness.Case{Name: "gardenlet, allowed by the webhook", Run: harness.Timed(func(i int) error {
				return get(ctx, a.gardenlet(i), a.object(i))
			})},
			[]harness.Case{{Name: "a review sent to the webhook itself", Run: harness.Timed(func(i int) error { return a.review(ctx, i) })}}},
		{"create of a ConfigMap of a shoot",
			harness.Case{Name: "ordinary user", Run: func(i int) (time.Duration, error) { return a.create(ctx, a.developer, i) }},
			harness.Case{Name: "gardenlet, both webhooks", Run: func(i int) (time.Duration, error) { return a.create(ctx, a.gardenlet(i), i) }},
			nil},
	} {
		cases := append([]harness.Case{table.ordinary, table.gardenlet}, table.others...)
		calls, err := a.webhookCalls(ctx, func() error { return harness.Measure(table.title, requests, cases...) })
		if err != nil {
			return err
		}
		fmt.Println("as the API server sees it:")
		calls.print()
		if calls, err = a.webhookCalls(ctx, func() error {
			for i := range requests {
				if _, err := table.ordinary.Run(i); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		both := calls.authorization.count + calls.admission.count
		harness.Row(fmt.Sprintf("calls of the webhooks for %d requests of the ordinary user", requests), fmt.Sprint(both),
			harness.Limit(both == 0, "none"))
	}
	return nil
}

// histogram is a part of what the API server has measured of a webhook.
type histogram struct{ count, within5ms, seconds float64 }

type webhookCalls struct{ authorization, admission histogram }

// webhookCalls returns the calls of the webhooks while a function runs.
func (a *actors) webhookCalls(ctx context.Context, do func() error) (calls webhookCalls, err error) {
	before, err := a.readCalls(ctx)
	if err != nil {
		return calls, err
	}
	if err := do(); err != nil {
		return calls, err
	}
	after, err := a.readCalls(ctx)
	return webhookCalls{after.authorization.minus(before.authorization), after.admission.minus(before.admission)}, err
}

func (a *actors) readCalls(ctx context.Context) (calls webhookCalls, err error) {
	if calls.authorization, err = readHistogram(ctx, a.Kube, authorization); err != nil {
		return calls, err
	}
	calls.admission, err = readHistogram(ctx, a.Kube, admission, restriction)
	return calls, err
}

func readHistogram(ctx context.Context, admin kubernetes.Interface, name string, labels ...string) (h histogram, err error) {
	if h.count, err = harness.Counter(ctx, admin, name+"_count", labels...); err != nil {
		return h, err
	}
	if h.seconds, err = harness.Counter(ctx, admin, name+"_sum", labels...); err != nil {
		return h, err
	}
	h.within5ms, err = harness.Counter(ctx, admin, name+"_bucket", append(labels, `le="0.005"`)...)
	return h, err
}

func (h histogram) minus(before histogram) histogram {
	return histogram{h.count - before.count, h.within5ms - before.within5ms, h.seconds - before.seconds}
}

func (c webhookCalls) print() {
	for _, webhook := range []struct {
		name  string
		least float64 // the least share within 5 ms
		histogram
	}{{"authorization webhook", 0.99, c.authorization}, {"admission webhook", 0, c.admission}} {
		if webhook.count == 0 {
			continue
		}
		share := webhook.within5ms / webhook.count
		harness.Row(webhook.name+": evaluations", fmt.Sprint(webhook.count))
		harness.Row(webhook.name+": mean", harness.MS(time.Duration(webhook.seconds/webhook.count*float64(time.Second))))
		harness.Row(webhook.name+": within 5 ms", fmt.Sprintf("%.2f %%", 100*share),
			harness.Limit(share >= webhook.least, fmt.Sprintf("at least %.0f %%", 100*webhook.least)))
	}
}
