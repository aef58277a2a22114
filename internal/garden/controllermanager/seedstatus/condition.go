package seedstatus

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// Write writes a condition of a Seed, if it says something else than before. A condition that is not good any more is
// Progressing until it has been so for longer than the threshold.
func Write(ctx context.Context, c client.Client, clk clock.PassiveClock, seed *corev1beta1.Seed, now corev1beta1.Condition, threshold time.Duration) error {
	if before := kit.Condition(seed.Status.Conditions, now.Type); before != nil && now.Status != corev1beta1.ConditionTrue && threshold > 0 {
		switch {
		case before.Status == corev1beta1.ConditionTrue,
			before.Status == corev1beta1.ConditionProgressing && clk.Since(before.LastTransitionTime.Time) <= threshold:
			now.Status = corev1beta1.ConditionProgressing
		}
	}
	conditions, changed := kit.SetCondition(seed.Status.Conditions, now, clk)
	if !changed {
		return nil
	}
	before := seed.DeepCopy()
	seed.Status.Conditions = conditions
	// The gardenlet and others write conditions, too: with the lock, none undoes what another one did.
	if err := c.Status().Patch(ctx, seed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the condition %s of the Seed %q: %w", now.Type, seed.Name, err)
	}
	return nil
}

// Queue makes queues that wait and back off on a clock, for the option NewQueue of a controller.
func Queue(clk clock.WithTicker) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: clk})
	}
}
