package conditions

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchSeed writes those conditions of a Seed that mutate changes, and no others, with a strategic merge patch by their
// types: other controllers may write their conditions at the same time.
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

// WriteSeed writes a condition of a Seed, if it has changed. A condition that was True stays Progressing until the
// check has failed for longer than the threshold.
func WriteSeed(ctx context.Context, c client.Client, clk clock.PassiveClock, seed *corev1beta1.Seed, now Condition,
	threshold time.Duration) error {
	return PatchSeed(ctx, c, seed, func(all []Condition) ([]Condition, bool) {
		return Set(all, ProgressingWithinThreshold(Get(all, now.Type), now, threshold, clk), clk)
	})
}
