package shoot

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot"

// AddToManager adds the controller to the seed's manager, with what it misses from there and from the garden.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	if r.GardenClient == nil {
		r.GardenClient = garden.GetClient()
	}
	if r.GardenReader == nil {
		r.GardenReader = garden.GetAPIReader()
	}
	if r.SeedClient == nil {
		r.SeedClient = mgr.GetClient()
	}
	if r.SeedReader == nil {
		r.SeedReader = mgr.GetAPIReader()
	}
	if r.Recorder == nil {
		r.Recorder = garden.GetEventRecorder(ControllerName + "-controller")
	}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	return component.Controller(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.concerns), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(r.ofNamespace), goes())).
		Complete(r)
}

// concerns says whether the seed is responsible for a Shoot.
func (r *Reconciler) concerns(obj client.Object) bool {
	shoot, ok := obj.(*corev1beta1.Shoot)
	return ok && responsible(shoot) == r.SeedName
}

// goes lets through that the namespace of a Shoot has gone: its deletion goes on then, or it is made again.
func goes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool {
			return e.Object.GetLabels()[constants.GardenRole] == constants.GardenRoleShoot
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofNamespace is the Shoot whose namespace in the seed this is.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.GardenClient.List(ctx, shoots); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Shoots", "namespace", namespace.GetName())
		return nil
	}
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; shoot.Status.TechnicalID == namespace.GetName() && r.concerns(shoot) {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(shoot)}}
		}
	}
	return nil
}
