package shootstate

import (
	"cmp"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
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
const ControllerName = "shoot-state"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.SeedReader = cmp.Or(r.SeedReader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, becomesReady())).
		Complete(r)
}

// becomesReady returns a predicate for the creation of a Shoot, and for updates by which it becomes ready or changes its
// seed.
func becomesReady() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1beta1.Shoot)
			now, ok2 := e.ObjectNew.(*corev1beta1.Shoot)
			return ok && ok2 && (!isReady(before) && isReady(now) || !ptr.Equal(before.Spec.SeedName, now.Spec.SeedName))
		},
	}
}
