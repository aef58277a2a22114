package main

import (
	"fmt"
	"net/http"
)

// measureAdmission compares creates of gardenlets, which both webhooks decide on, with those of an ordinary user.
func measureAdmission(c config, l *landscape, a actors) error {
	var gardenlet, ordinary latencies
	counted := metrics{}
	for range c.turns {
		before, err := counters(l, a.admin)
		if err != nil {
			return err
		}
		took, err := creates(a.admin, c.shoots, a.gardenlet)
		if err != nil {
			return err
		}
		after, err := counters(l, a.admin)
		if err != nil {
			return err
		}
		gardenlet, counted = append(gardenlet, took...), counted.plus(after.minus(before))
		took, err = creates(a.admin, c.shoots, func(int) *user { return a.developer })
		if err != nil {
			return err
		}
		ordinary = append(ordinary, took...)
	}
	webhook := counted.histogram(admissionDuration, restriction)
	fmt.Printf("\ncreate of a ConfigMap of a shoot, one at a time, %d of each kind, in %d turns\n", len(gardenlet), c.turns)
	fmt.Printf("  %-46s %9s   %9s  p99\n", "gardenlet, both webhooks", ms(gardenlet.median()), ms(gardenlet.p99()))
	fmt.Printf("  %-46s %9s   %9s  p99\n", "ordinary user", ms(ordinary.median()), ms(ordinary.p99()))
	fmt.Printf("  %-46s %9s   %9s\n", "difference", ms(gardenlet.median()-ordinary.median()), ms(gardenlet.p99()-ordinary.p99()))
	fmt.Printf("  %-46s %9s   (%.0f calls, %.0f decisions)\n", "admission webhook, mean by the API server", ms(webhook.mean()),
		webhook.count, counted.sum(restrictionDecisions))
	fmt.Printf("  %-46s %9s\n", "authorization webhook, mean by the API server", ms(counted.histogram(webhookDuration).mean()))
	return nil
}

// creates creates a ConfigMap for every shoot as one of the users, and deletes them as the administrator.
func creates(admin *user, shoots int, by func(int) *user) (latencies, error) {
	name := func(i int) string { return shootName(i) + ".ca-kubelet" }
	took, err := oneAtATime(shoots, func(i int) error { return by(i).create(objects+"/configmaps", configMap(name(i))) })
	if err != nil {
		return nil, err
	}
	return took, sixteenAtATime(shoots, func(i int) error {
		return admin.send(http.MethodDelete, objects+"/configmaps/"+name(i), nil, http.StatusOK)
	})
}
