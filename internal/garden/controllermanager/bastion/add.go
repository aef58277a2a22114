package bastion

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "bastion"

// AddToManager adds the controller to the manager, from which it takes unset dependencies.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&operationsv1alpha1.Bastion{}, builder.WithPredicates(endMoves())).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.bastionsOf), builder.WithPredicates(shootGone())).
		Complete(r)
}

// endMoves passes new Bastions and those whose spec or expiration has changed. Other status updates are made by the
// gardenlet.
func endMoves() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(before, after *operationsv1alpha1.Bastion) bool {
		return before.Generation != after.Generation || !before.Status.ExpirationTimestamp.Equal(after.Status.ExpirationTimestamp)
	})
}

// shootGone passes Shoots that are deleted, are being deleted, do not allow SSH any more, have another Seed, or have
// been replaced by another Shoot. It does not pass creations, because each Bastion is reconciled at the start and then
// reads its Shoot.
func shootGone() predicate.Predicate {
	predicates := kit.UpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return before.UID != after.UID || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
			allowsSSH(before) && !allowsSSH(after) ||
			!ptr.Equal(before.Spec.SeedName, after.Spec.SeedName)
	})
	predicates.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return predicates
}

// bastionsOf returns requests for the Bastions of a Shoot.
func (r *Reconciler) bastionsOf(ctx context.Context, shoot client.Object) []reconcile.Request {
	bastions := &operationsv1alpha1.BastionList{}
	if err := r.Client.List(ctx, bastions, client.InNamespace(shoot.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "Listing the Bastions of a Shoot", "shoot", client.ObjectKeyFromObject(shoot))
		return nil
	}
	var requests []reconcile.Request
	for i := range bastions.Items {
		if b := &bastions.Items[i]; b.Spec.ShootRef.Name == shoot.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return requests
}
