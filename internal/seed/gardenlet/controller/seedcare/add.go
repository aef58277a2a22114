package seedcare

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed-care"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedWithMaxWaitRateLimiter(
			workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), syncPeriod),
		ReconciliationTimeout: syncPeriod,
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.Own), changed())).
		Complete(r)
}

// changed returns a predicate for the events that trigger a check at once: the Seed is created, its reconciliation has
// succeeded, or its annotation for the emergency stop has changed.
func changed() predicate.Predicate {
	changed := controllerutils.UpdatesOnly(func(before, after *corev1beta1.Seed) bool {
		return !succeeded(before.Status.LastOperation) && succeeded(after.Status.LastOperation) || stopped(before) != stopped(after)
	})
	changed.CreateFunc = func(event.CreateEvent) bool { return true }
	return changed
}

func succeeded(last *corev1beta1.LastOperation) bool {
	return last != nil && last.Type != corev1beta1.LastOperationTypeDelete && last.State == corev1beta1.LastOperationStateSucceeded
}
