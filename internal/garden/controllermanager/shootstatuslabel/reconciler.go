// Package shootstatuslabel sets the status label of Shoots, so that they can be selected by it: healthy, progressing,
// unknown or unhealthy. The status is derived from the last operation, the last errors and the conditions.
//
// It may import API types and the kit beside it.
package shootstatuslabel

import (
	"context"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-statuslabel"

// Reconciler sets the status label of Shoots.
type Reconciler struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(mislabelled())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// mislabelled passes Shoots whose label differs from their status.
func mislabelled() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(_, after *corev1beta1.Shoot) bool {
		return after.Labels[constants.ShootStatus] != Status(after)
	})
}

// Reconcile sets the status label of a Shoot.
func (r *Reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	return reconcile.Result{}, client.IgnoreNotFound(operation.Patch(ctx, r.Client, shoot, func(shoot *corev1beta1.Shoot) {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.ShootStatus, Status(shoot))
	}))
}

// The values of the label, the same as in Gardener.
const (
	Healthy     = "healthy"
	Progressing = "progressing"
	Unknown     = "unknown"
	Unhealthy   = "unhealthy"
)

// ranks are the values from the worst to the best.
var ranks = []string{Unhealthy, Unknown, Progressing, Healthy}

// Rank returns the rank of a label value: the better the status, the higher.
func Rank(status string) int { return slices.Index(ranks, status) }

// Status returns the value of the label for a Shoot.
func Status(shoot *corev1beta1.Shoot) string {
	operation := shoot.Status.LastOperation
	if operation == nil {
		return Healthy // Nothing has been tried yet.
	}
	succeeded, withoutErrors := operation.State == corev1beta1.LastOperationStateSucceeded, len(shoot.Status.LastErrors) == 0
	creating := operation.Type == corev1beta1.LastOperationTypeCreate && !succeeded
	switch {
	case creating || operation.Type == corev1beta1.LastOperationTypeDelete:
		// The conditions say nothing while the Shoot is not complete.
		return healthyIf(withoutErrors)
	case operation.State == corev1beta1.LastOperationStateProcessing:
		return worse(healthyIf(withoutErrors), ofConditions(shoot.Status.Conditions))
	default:
		return worse(healthyIf(succeeded), ofConditions(shoot.Status.Conditions))
	}
}

func ofConditions(conditions []corev1beta1.Condition) string {
	status := Healthy
	for _, condition := range conditions {
		switch condition.Status {
		case corev1beta1.ConditionTrue:
		case corev1beta1.ConditionProgressing:
			status = worse(status, Progressing)
		case corev1beta1.ConditionUnknown:
			status = worse(status, Unknown)
		default:
			return Unhealthy
		}
	}
	return status
}

func healthyIf(is bool) string {
	if is {
		return Healthy
	}
	return Unhealthy
}

func worse(a, b string) string {
	if Rank(b) < Rank(a) {
		return b
	}
	return a
}
