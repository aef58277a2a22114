package bastion

import (
	"context"
	"reflect"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "bastion"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &operationsv1alpha1.Bastion{},
			&handler.EnqueueRequestForObject{}, changed())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{},
			handler.EnqueueRequestsFromMapFunc(r.bastionsOf), moved())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.Bastion{},
			handler.EnqueueRequestsFromMapFunc(inGarden), predicate.Or(operation.OperationEndedPredicate(operation.OfExtension), statusChanged()))).
		Complete(r)
}

// changed returns a predicate for changes of the spec, the annotations and the deletion timestamp of a Bastion.
// Heartbeats and other changes of the status do not pass.
func changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		controllerutils.Updates(func(before, after client.Object) bool {
			return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
		}))
}

// moved returns a predicate for updates of a Shoot that change its seed or its namespace in the seed.
func moved() predicate.Predicate {
	return controllerutils.Updates(func(before, after *corev1beta1.Shoot) bool {
		return ptr.Deref(before.Spec.SeedName, "") != ptr.Deref(after.Spec.SeedName, "") ||
			ptr.Deref(before.Status.SeedName, "") != ptr.Deref(after.Status.SeedName, "") ||
			before.Status.TechnicalID != after.Status.TechnicalID
	})
}

// statusChanged returns a predicate for a Bastion of the seed whose SSH port, address, last error or conditions have
// changed, which also happens outside of an operation.
func statusChanged() predicate.Predicate {
	return controllerutils.UpdatesOnly(func(before, after *extensionsv1alpha1.Bastion) bool {
		return before.Annotations[operation.AnnotationSSHPort] != after.Annotations[operation.AnnotationSSHPort] ||
			!equality.Semantic.DeepEqual(before.Status.Ingress, after.Status.Ingress) ||
			!reflect.DeepEqual(before.Status.LastError, after.Status.LastError) ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	})
}

// inGarden maps a Bastion of the seed to the Bastion of the garden that it was created for.
func inGarden(_ context.Context, obj client.Object) []reconcile.Request {
	namespace := obj.GetAnnotations()[AnnotationNamespace]
	if namespace == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: obj.GetName()}}}
}

// bastionsOf maps a Shoot to its Bastions.
func (r *Reconciler) bastionsOf(ctx context.Context, shoot client.Object) (requests []reconcile.Request) {
	bastions := &operationsv1alpha1.BastionList{}
	if err := r.GardenClient.List(ctx, bastions, client.InNamespace(shoot.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Bastions", "namespace", shoot.GetNamespace())
		return nil
	}
	for i := range bastions.Items {
		if bastions.Items[i].Spec.ShootRef.Name == shoot.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bastions.Items[i])})
		}
	}
	return requests
}
