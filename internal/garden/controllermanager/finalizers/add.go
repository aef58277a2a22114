package finalizers

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// AddToManager adds the controller to the manager, from which it takes unset dependencies.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	r.Recorder = cmp.Or(r.Recorder, mgr.GetEventRecorder(r.Kind.Name+"-controller"))
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	b := component.NewControllerBuilder(mgr, r.Kind.Name).For(r.Kind.object(), builder.WithPredicates(changed()))
	for _, use := range r.Kind.uses {
		b = b.Watches(use.object, handler.EnqueueRequestsFromMapFunc(r.releasedBy(use)), builder.WithPredicates(mayRelease()))
	}
	for _, watch := range r.Kind.watches {
		b = b.Watches(watch.object, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return requests(watch.names(ctx, r.Client, obj))
		}), builder.WithPredicates(predicate.Funcs{UpdateFunc: respecified}))
	}
	return b.Complete(r)
}

// releasedBy returns a function that maps a user to requests for those objects in deletion that it refers to. In case
// of an update, the function is called with the old and the new user.
func (r *Reconciler) releasedBy(u use) handler.MapFunc {
	return func(ctx context.Context, user client.Object) []reconcile.Request {
		var waiting []types.NamespacedName
		for _, name := range u.refers(user) {
			obj := r.Kind.object()
			if err := r.Client.Get(ctx, name, obj); err == nil && obj.GetDeletionTimestamp() != nil {
				waiting = append(waiting, name)
			}
		}
		return requests(waiting)
	}
}

// changed passes updates of the spec, the deletion timestamp and the finalizers, but not of the status, which this
// controller writes.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return respecified(e) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
	}}
}

// mayRelease passes the updates and deletions after which a user may refer to fewer objects than before.
func mayRelease() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  respecified,
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// respecified reports whether the spec may have changed. CloudProfiles, bindings and other kinds have no generation
// (0), so that every update counts.
func respecified(e event.UpdateEvent) bool {
	return e.ObjectNew.GetGeneration() == 0 || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
}

func requests(names []types.NamespacedName) (all []reconcile.Request) {
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: name})
	}
	return all
}
