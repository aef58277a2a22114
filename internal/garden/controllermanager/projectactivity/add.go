package projectactivity

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "project-activity"

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	toProject := handler.EnqueueRequestsFromMapFunc(r.projectOf)
	respecified := builder.WithPredicates(r.activity(), predicate.GenerationChangedPredicate{})
	referred := builder.WithPredicates(r.activity(), referredTo())
	return component.NewControllerBuilder(mgr, ControllerName).
		Watches(&corev1beta1.Shoot{}, toProject, respecified).
		Watches(&corev1beta1.BackupEntry{}, toProject, respecified).
		Watches(&corev1beta1.Quota{}, toProject, referred).
		WatchesMetadata(&corev1.Secret{}, toProject, referred).
		WatchesMetadata(&corev1beta1.InternalSecret{}, toProject, referred).
		Complete(r)
}

// activity passes events that count as activity: creations of recent objects, real updates, and deletions.
func (r *Reconciler) activity() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return r.Clock.Since(e.Object.GetCreationTimestamp().Time) <= newFor
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// referredTo passes objects to which a binding refers, or referred before the update.
func referredTo() predicate.Predicate {
	is := predicate.NewPredicateFuncs(referred)
	is.UpdateFunc = func(e event.UpdateEvent) bool { return referred(e.ObjectOld) || referred(e.ObjectNew) }
	return is
}

func referred(obj client.Object) bool {
	_, bySecretBinding := obj.GetLabels()[constants.LabelSecretBindingReference]
	_, byCredentialsBinding := obj.GetLabels()[constants.LabelCredentialsBindingReference]
	return bySecretBinding || byCredentialsBinding
}

// projectOf returns a request for the Project of an object's namespace.
func (r *Reconciler) projectOf(ctx context.Context, obj client.Object) []reconcile.Request {
	projects := &corev1beta1.ProjectList{}
	if err := r.Client.List(ctx, projects); err != nil {
		logf.FromContext(ctx).Error(err, "Listing projects", "namespace", obj.GetNamespace())
		return nil
	}
	for _, project := range projects.Items {
		if project.Spec.Namespace != nil && *project.Spec.Namespace == obj.GetNamespace() {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: project.Name}}}
		}
	}
	return nil
}
