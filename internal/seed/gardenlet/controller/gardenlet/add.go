package gardenlet

import (
	"cmp"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/utils/clock"
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

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "gardenlet"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.GardenREST = cmp.Or(r.GardenREST, garden.GetConfig())
	r.Recorder = cmp.Or(r.Recorder, garden.GetEventRecorder(ControllerName+"-controller"))
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &seedmanagementv1alpha1.Gardenlet{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.isOwn), predicate.GenerationChangedPredicate{},
			predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		Complete(r)
}
