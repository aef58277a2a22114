package conditions

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchSeed writes what mutate changes in the conditions of a Seed: those and no others, by a patch that goes by their
// types. Other controllers may write theirs at the same moment.
func PatchSeed(ctx context.Context, c client.Client, seed *corev1beta1.Seed, mutate func([]Condition) ([]Condition, bool)) error {
	before := seed.DeepCopy()
	all, changed := mutate(seed.Status.Conditions)
	if !changed {
		return nil
	}
	seed.Status.Conditions = all
	if err := c.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); err != nil {
		return fmt.Errorf("writing the conditions of Seed %s: %w", seed.Name, err)
	}
	return nil
}

// WriteSeed writes a condition of a Seed, if it says something else than before: Progressing until it has not been good for
// longer than the threshold.
func WriteSeed(ctx context.Context, c client.Client, clk clock.PassiveClock, seed *corev1beta1.Seed, now Condition,
	threshold time.Duration) error {
	return PatchSeed(ctx, c, seed, func(all []Condition) ([]Condition, bool) {
		return Set(all, Patient(Get(all, now.Type), now, threshold, clk), clk)
	})
}
