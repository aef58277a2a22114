package shootretry

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-retry"

// Defaults of the periods, the same as in Gardener.
const (
	DefaultRetryPeriod       = 10 * time.Minute
	DefaultRetryJitterPeriod = 5 * time.Minute
)

// Reconciler retries failed Shoots.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// RetryPeriod is the delay after which a failed Shoot is retried, and RetryJitterPeriod the maximum random addition
	// to it. Gardener's defaults if they are 0.
	RetryPeriod, RetryJitterPeriod time.Duration
}

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(fails())).
		Complete(r)
}

// fails passes Shoots that have just failed because of rate limits.
func fails() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return isToBeRetried(after) && !isFailed(before)
	})
}

func isFailed(shoot *corev1beta1.Shoot) bool {
	operation := shoot.Status.LastOperation
	return operation != nil && operation.State == corev1beta1.LastOperationStateFailed && shoot.Generation == shoot.Status.ObservedGeneration
}

func isToBeRetried(shoot *corev1beta1.Shoot) bool {
	return isFailed(shoot) && slices.ContainsFunc(shoot.Status.LastErrors, func(e corev1beta1.LastError) bool {
		return slices.Contains(e.Codes, corev1beta1.ErrorInfraRateLimitsExceeded)
	})
}

// Reconcile retries a Shoot if the retry period has passed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isToBeRetried(shoot) {
		return reconcile.Result{}, nil
	}
	at := shoot.Status.LastOperation.LastUpdateTime.Add(cmp.Or(r.RetryPeriod, DefaultRetryPeriod))
	if left := at.Sub(r.Clock.Now()); left >= 0 {
		return reconcile.Result{RequeueAfter: left + 1 + rand.N(cmp.Or(r.RetryJitterPeriod, DefaultRetryJitterPeriod))}, nil
	}
	logf.FromContext(ctx).Info("Trying a Shoot again that failed because of rate limits")
	err := kit.Annotate(ctx, r.Client, shoot, map[string]string{constants.GardenerOperation: constants.ShootOperationRetry})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("asking for the Shoot %s to be tried again: %w", request, err)
	}
	return reconcile.Result{}, nil
}
