package managedseedset

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "managedseedset"

// AddToManager adds the controller to the manager, from which it takes unset dependencies.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	r.Recorder = cmp.Or(r.Recorder, mgr.GetEventRecorder(ControllerName+"-controller"))
	toSet := handler.EnqueueRequestsFromMapFunc(ownerOf)
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&seedmanagementv1alpha1.ManagedSeedSet{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.Shoot{}, toSet, builder.WithPredicates(stateChanged(shootState))).
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, toSet, builder.WithPredicates(stateChanged(managedSeedState))).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.setOf), builder.WithPredicates(stateChanged(isSeedReady))).
		Complete(r)
}

// stateChanged passes deletions, and updates that change the state or set the deletion timestamp.
func stateChanged[T client.Object, S comparable](state func(T) S) predicate.Predicate {
	changed := kit.UpdatesIf(func(before, after T) bool {
		return state(before) != state(after) || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
	})
	changed.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return changed
}

// shootState returns the state of a Shoot that is relevant for its set.
func shootState(shoot *corev1beta1.Shoot) [2]string {
	return [2]string{statusOf(shoot, nil).String(), health(shoot)}
}

// managedSeedState returns the state of a ManagedSeed that is relevant for its set.
func managedSeedState(managedSeed *seedmanagementv1alpha1.ManagedSeed) status {
	return statusOf(&corev1beta1.Shoot{}, managedSeed)
}

// setOf returns a request for the ManagedSeedSet to whose ManagedSeed a Seed belongs.
func (r *Reconciler) setOf(ctx context.Context, seed client.Object) []reconcile.Request {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: constants.GardenNamespace, Name: seed.GetName()}, managedSeed); err != nil {
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "Reading the ManagedSeed of a Seed", "seed", seed.GetName())
		}
		return nil
	}
	return ownerOf(ctx, managedSeed)
}

// ownerOf returns a request for the ManagedSeedSet that is the controller of a Shoot or ManagedSeed.
func ownerOf(_ context.Context, obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "ManagedSeedSet" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
}
