package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// The limits for a request of a gardenlet.
const (
	mostMedian = time.Millisecond
	mostP99    = 5 * time.Millisecond
)

func measureAuthorization(ctx context.Context, c config, a *actors) error {
	var gardenlet, ordinary, direct load
	kinds := []struct {
		load *load
		send func(context.Context, int) error
	}{
		{&gardenlet, func(ctx context.Context, i int) error { return a.gardenlet(i).get(ctx, ownObject(i, c.shoots)) }},
		{&ordinary, func(ctx context.Context, i int) error { return a.developer.get(ctx, ownObject(i, c.shoots)) }},
		{&direct, func(ctx context.Context, i int) error { return a.webhook.review(ctx, i, c.shoots) }},
	}
	for round := range c.turns {
		for i := range kinds {
			kind := kinds[(i+round)%len(kinds)] // so that none always comes after the same
			t, err := newTurn(ctx, c, a, kind.send)
			if err != nil {
				return err
			}
			*kind.load = append(*kind.load, t)
		}
	}
	fmt.Printf("\nget of a Secret or ConfigMap, %d requests/s, %d of each kind, in %d turns\n", c.rate, len(gardenlet.took()), c.turns)
	gardenlet.print("gardenlet, allowed by the webhook")
	ordinary.print("ordinary user, allowed by RBAC")
	printDifference("difference", gardenlet, ordinary)
	direct.print("a review to the webhook itself, from here")
	quietGardenlet, quietOrdinary := gardenlet.quiet(), ordinary.quiet()
	if len(quietGardenlet) > 0 && len(quietOrdinary) > 0 {
		printDifference("difference in the quiet turns", quietGardenlet, quietOrdinary)
	}
	if err := printRoundTrip("for the gardenlets' requests", gardenlet); err != nil || len(quietGardenlet) == 0 {
		return err
	}
	return printRoundTrip("in the quiet turns", quietGardenlet)
}

// printRoundTrip prints what the API server has measured of the webhook. Its histograms have few bounds: whether the
// median and the 99th percentile are within the limits follows from the shares below them.
func printRoundTrip(when string, r load) error {
	m, requests := r.counted(), len(r.took())
	webhook, condition, checks := m.histogram(webhookDuration), m.histogram(conditionDuration), m.histogram(pathChecks)
	inMedian, err := m.histogram(allDuration, `result="allowed"`).within(mostMedian)
	if err != nil {
		return fmt.Errorf("%s: %w", allDuration, err)
	}
	inP99, err := webhook.within(mostP99)
	if err != nil {
		return fmt.Errorf("%s: %w", webhookDuration, err)
	}
	fmt.Printf("round trip of the webhook as the API server sees it, %s\n", when)
	fmt.Printf("  %-46s %9.0f for %d requests; %.0f failed\n", "evaluations", webhook.count, requests,
		webhook.count-m.sum(webhookEvaluations, `result="success"`))
	fmt.Printf("  %-46s %9s\n", "mean", harness.MS(webhook.mean()))
	fmt.Printf("  %-46s %s\n", "all authorizers together within 1 ms", atLeast(inMedian, 0.5))
	fmt.Printf("  %-46s %s\n", "webhook within 5 ms", atLeast(inP99, 0.99))
	fmt.Printf("  %-46s %6.1f µs mean\n", "match condition", condition.mean().Seconds()*1e6)
	fmt.Printf("  %-46s %9.0f decisions, %.0f path checks of %d ns mean\n", "admission controller",
		m.sum(authorizerDecisions), checks.count, checks.mean().Nanoseconds())
	return nil
}

// atLeast formats a share with its minimum, and marks it if it is lower.
func atLeast(share, least float64) string {
	mark := " "
	if share < least {
		mark = "!"
	}
	return fmt.Sprintf("%7.2f %% %s (to be at least %.0f %%)", 100*share, mark, 100*least)
}

// review sends a review to the webhook as the API server does.
func (u *user) review(ctx context.Context, i, shoots int) error {
	resource, name := "secrets", shootName(i%shoots)+".monitoring"
	if i/len(seeds)%2 != 0 {
		resource, name = "configmaps", shootName(i%shoots)+".ca-cluster"
	}
	body := fmt.Appendf(nil, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{
		"resourceAttributes":{"namespace":%q,"verb":"get","version":"v1","resource":%q,"name":%q},
		"user":"gardener.cloud:system:seed:%s","groups":["gardener.cloud:system:seeds","system:authenticated"]},"status":{"allowed":false}}`,
		namespace, resource, name, seeds[i%len(seeds)])
	return u.send(ctx, http.MethodPost, "/webhooks/auth/seed", body, http.StatusOK)
}
