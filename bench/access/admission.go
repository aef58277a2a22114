package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// measureAdmission compares creates of gardenlets, which both webhooks decide on, with those of an ordinary user.
func measureAdmission(ctx context.Context, c config, a *actors) error {
	var gardenlet, ordinary latencies
	counted := metrics{}
	for range c.turns {
		before, err := a.counters(ctx)
		if err != nil {
			return err
		}
		took, err := creates(ctx, a.admin, c.shoots, a.gardenlet)
		if err != nil {
			return err
		}
		after, err := a.counters(ctx)
		if err != nil {
			return err
		}
		gardenlet, counted = append(gardenlet, took...), counted.plus(after.minus(before))
		took, err = creates(ctx, a.admin, c.shoots, func(int) *user { return a.developer })
		if err != nil {
			return err
		}
		ordinary = append(ordinary, took...)
	}
	webhook := counted.histogram(admissionDuration, restriction)
	fmt.Printf("\ncreate of a ConfigMap of a shoot, one at a time, %d of each kind, in %d turns\n", len(gardenlet), c.turns)
	fmt.Printf("  %-46s %9s   %9s  p99\n", "gardenlet, both webhooks", harness.MS(gardenlet.median()), harness.MS(gardenlet.p99()))
	fmt.Printf("  %-46s %9s   %9s  p99\n", "ordinary user", harness.MS(ordinary.median()), harness.MS(ordinary.p99()))
	fmt.Printf("  %-46s %9s   %9s\n", "difference", harness.MS(gardenlet.median()-ordinary.median()),
		harness.MS(gardenlet.p99()-ordinary.p99()))
	fmt.Printf("  %-46s %9s   (%.0f calls, %.0f decisions)\n", "admission webhook, mean by the API server", harness.MS(webhook.mean()),
		webhook.count, counted.sum(restrictionDecisions))
	fmt.Printf("  %-46s %9s\n", "authorization webhook, mean by the API server", harness.MS(counted.histogram(webhookDuration).mean()))
	return nil
}

// creates creates a ConfigMap for every shoot as one of the users, and deletes them as the administrator.
func creates(ctx context.Context, admin *user, shoots int, by func(int) *user) (latencies, error) {
	name := func(i int) string { return shootName(i) + ".ca-kubelet" }
	took, err := oneAtATime(ctx, shoots, func(ctx context.Context, i int) error {
		return by(i).create(ctx, objects+"/configmaps", configMap(name(i)))
	})
	if err != nil {
		return nil, err
	}
	return took, harness.InParallel(ctx, atOnce, shoots, func(ctx context.Context, i int) error {
		return admin.send(ctx, http.MethodDelete, objects+"/configmaps/"+name(i), nil, http.StatusOK)
	})
}
