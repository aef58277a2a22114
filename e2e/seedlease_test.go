package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// seedMonitorPeriod is shorter than Gardener's 40 s, and longer than a busy machine delays the renewals of a
// gardenlet.
const seedMonitorPeriod = 8 * time.Second

// leaseThatStops stops the gardenlet of a seed: GardenletReady becomes Unknown once the lease is older than the
// monitor period, and no sooner. It is True again when the gardenlet is back.
func (l *landscape) leaseThatStops(t *testing.T) {
	l.restartWithPeriod(t)
	l.waitGardenletReady(t, "True")
	before := l.lease(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if now := l.lease(t); now.Spec.RenewTime == nil || time.Since(now.Spec.RenewTime.Time) > seedMonitorPeriod {
			return fmt.Errorf("the lease was renewed at %v", now.Spec.RenewTime)
		}
		return nil
	})

	l.restartWithPeriod(t, "--controllers", "*,-gardenlet")
	last := l.lease(t).Spec.RenewTime.Time
	condition := l.waitGardenletReady(t, "Unknown")
	if condition["reason"] != "StatusUnknown" {
		t.Errorf("the reason is %v", condition["reason"])
	}
	since, err := time.Parse(time.RFC3339, fmt.Sprint(condition["lastTransitionTime"]))
	must(t, err)
	// Transition times are whole seconds.
	if age := since.Sub(last); age < seedMonitorPeriod-time.Second {
		t.Errorf("Unknown %s after the lease's last renewal, the monitor period is %s", age, seedMonitorPeriod)
	} else {
		t.Logf("Unknown %s after the lease's last renewal", age.Round(time.Second))
	}
	if now := l.lease(t).Spec.RenewTime.Time; !now.Equal(last) {
		t.Errorf("the lease is renewed: at %s, before at %s", now, last)
	}
	l.configuresGardenlet(t)

	l.restartWithPeriod(t)
	l.waitGardenletReady(t, "True")
	if now := l.lease(t).Spec.RenewTime.Time; !now.After(last) {
		t.Errorf("the lease is as old as before: %s", now)
	}
	if after := l.lease(t); after.UID != before.UID {
		t.Error("the lease is another one than before")
	}
}

// configuresGardenlet checks that the landscape, which has no gardenlet, prints a configuration for Gardener's.
func (l *landscape) configuresGardenlet(t *testing.T) {
	t.Helper()
	out := command(t, "", binary, "gardenlet-config", "local", "--data-dir", l.dir).OK(t).Stdout
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	must(t, yaml.UnmarshalStrict([]byte(out), config))
	if config.Kind != "GardenletConfiguration" || config.SeedConfig == nil || config.SeedConfig.Name != "local" {
		t.Errorf("the configuration is %s", out)
	}
}

// restartWithPeriod stops the landscape and starts it again.
func (l *landscape) restartWithPeriod(t *testing.T, args ...string) {
	t.Helper()
	l.stop(t)
	l.up(t, append([]string{"--seed-monitor-period", seedMonitorPeriod.String()}, args...)...)
}

func (l *landscape) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := l.kube.CoordinationV1().Leases("gardener-system-seed-lease").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	return lease
}

// waitGardenletReady waits until the Seed's condition GardenletReady has a status, and returns the condition.
func (l *landscape) waitGardenletReady(t *testing.T, status string) (condition map[string]any) {
	t.Helper()
	last := any(nil)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		seed, err := l.core("seeds", "").Get(ctx, "local", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("GardenletReady is %v: %w", last, err)
		}
		condition = conditionOf(seed, "GardenletReady")
		if last = condition["status"]; last != status {
			return fmt.Errorf("GardenletReady is %v, expected %s", last, status)
		}
		return nil
	})
	return condition
}
