package managedseed

import (
	"context"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
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

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "managedseed"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: gardenletconfigv1alpha1.DefaultControllerConcurrentSyncs,
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &seedmanagementv1alpha1.ManagedSeed{},
			&handler.EnqueueRequestForObject{}, predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			handler.EnqueueRequestsFromMapFunc(ofSeed), predicate.NewPredicateFuncs(r.isOther), seedChanged())).
		Complete(r)
}

// isOther reports whether a Seed is not the gardenlet's own. The other Seeds that the gardenlet sees belong to its
// ManagedSeeds.
func (r *Reconciler) isOther(obj client.Object) bool { return !r.Own(obj) }

// ofSeed maps a Seed to the ManagedSeed with the same name.
func ofSeed(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: constants.GardenNamespace, Name: obj.GetName()}}}
}

// seedChanged returns a predicate for changes of a Seed that may require a reconciliation of its ManagedSeed. Changes
// of its conditions do not pass.
func seedChanged() predicate.Predicate {
	changed := controllerutils.Updates(func(before, after *corev1beta1.Seed) bool {
		return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!before.Status.ClientCertificateExpirationTimestamp.Equal(after.Status.ClientCertificateExpirationTimestamp)
	})
	changed.CreateFunc = func(e event.CreateEvent) bool { return !e.IsInInitialList }
	return changed
}
