package seed

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.Own), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(r.Renewed, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// RenewedEvent returns the event that, sent on Renewed, triggers a reconciliation of the Seed with the given name.
func RenewedEvent(seedName string) event.GenericEvent {
	return event.GenericEvent{Object: &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}}
}
