package seedcare

import (
	"cmp"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/probe"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed-care"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.SeedReader = cmp.Or(r.SeedReader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	if r.Server == nil {
		server, err := probe.New(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		r.Server = server
	}
	if err := r.loadExpected(); err != nil {
		return err
	}
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedWithMaxWaitRateLimiter(
			workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), r.sync()),
		ReconciliationTimeout: max(r.sync(), minTimeout),
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.own), occasions())).
		Complete(r)
}

func (r *Reconciler) own(obj client.Object) bool { return obj.GetName() == r.SeedName }

// occasions returns a predicate for the events that trigger a check at once: the Seed is created, its reconciliation has
// succeeded, or its annotation for the emergency stop has changed.
func occasions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*corev1beta1.Seed)
			after, ok2 := e.ObjectNew.(*corev1beta1.Seed)
			return ok1 && ok2 && (!succeeded(before.Status.LastOperation) && succeeded(after.Status.LastOperation) ||
				stopped(before) != stopped(after))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func succeeded(last *corev1beta1.LastOperation) bool {
	return last != nil && last.Type != corev1beta1.LastOperationTypeDelete && last.State == corev1beta1.LastOperationStateSucceeded
}
