package projectstale

import (
	"cmp"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "project-stale"

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Project{}, builder.WithPredicates(changed())).
		Complete(r)
}

// changed ignores updates of the last activity only: the Project is checked regularly anyway.
func changed() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(before, after *corev1beta1.Project) bool {
		return before.Status.LastActivityTimestamp.Equal(after.Status.LastActivityTimestamp) ||
			after.Generation != after.Status.ObservedGeneration
	})
}
