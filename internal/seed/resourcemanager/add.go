package resourcemanager

import (
	"context"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "managedresource"

// AddToManager adds the controller to the seed's manager, with what it misses from there.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Reader == nil {
		r.Reader = mgr.GetAPIReader()
	}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	return component.Controller(mgr, ControllerName).
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.referringTo), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(r)
}

// referringTo finds the ManagedResources whose objects are in a Secret.
func (r *Reconciler) referringTo(ctx context.Context, secret client.Object) (requests []reconcile.Request) {
	all := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.Client.List(ctx, all, client.InNamespace(secret.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "Listing ManagedResources", "namespace", secret.GetNamespace())
		return nil
	}
	for i := range all.Items {
		if slices.Contains(all.Items[i].Spec.SecretRefs, corev1.LocalObjectReference{Name: secret.GetName()}) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
