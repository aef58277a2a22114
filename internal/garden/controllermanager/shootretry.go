package controllermanager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// shootRetryName is the name of the controller, which is Gardener's.
const shootRetryName = "shoot-retry"

// DefaultRetryPeriod is the delay after which a failed Shoot is retried, and DefaultRetryJitterPeriod the maximum random
// addition to it, the same as in Gardener.
const (
	DefaultRetryPeriod       = 10 * time.Minute
	DefaultRetryJitterPeriod = 5 * time.Minute
)

// ShootRetry retries failed Shoots whose operation exceeded the rate limits of an infrastructure: some time after the
// failure, with jitter, it sets the operation annotation retry as a user would.
type ShootRetry struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootRetry) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootRetryName)
	return component.NewControllerBuilder(mgr, shootRetryName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(shootFails())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// shootFails passes Shoots that have just failed because of rate limits.
func shootFails() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return isToBeRetried(after) && !kit.IsFailed(before)
	})
}

func isToBeRetried(shoot *corev1beta1.Shoot) bool {
	return kit.IsFailed(shoot) && slices.ContainsFunc(shoot.Status.LastErrors, func(e corev1beta1.LastError) bool {
		return slices.Contains(e.Codes, corev1beta1.ErrorInfraRateLimitsExceeded)
	})
}

// Reconcile retries a Shoot if the retry period has passed.
func (r *ShootRetry) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !isToBeRetried(shoot) {
		return reconcile.Result{}, nil
	}
	at := shoot.Status.LastOperation.LastUpdateTime.Add(DefaultRetryPeriod)
	if left := at.Sub(r.Clock.Now()); left >= 0 {
		return reconcile.Result{RequeueAfter: left + 1 + rand.N(DefaultRetryJitterPeriod)}, nil
	}
	logf.FromContext(ctx).Info("Trying a Shoot again that failed because of rate limits")
	err := r.Annotate(ctx, shoot, map[string]string{constants.GardenerOperation: constants.ShootOperationRetry})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("asking for the Shoot %s to be tried again: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return reconcile.Result{}, nil
}
