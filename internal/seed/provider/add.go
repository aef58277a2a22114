package provider

import (
	"cmp"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// AddToManager adds the controller of the kind to the manager. It sets the clients if they are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	b := component.NewControllerBuilder(mgr, "extension-"+r.Kind.Name, controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
	}).For(r.Kind.object(), builder.WithPredicates(ofProvider(), due(r.Kind.guard != nil)))
	if r.Kind.watch != nil {
		if err := r.Kind.watch(b, mgr); err != nil {
			return err
		}
	}
	return b.Complete(r)
}

func ofProvider() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		extension, ok := obj.(extensionsv1alpha1.Object)
		return ok && extension.GetExtensionSpec().GetExtensionType() == Type
	})
}

// due returns a predicate for events that start an operation or matter to one that waits. It passes only changes of what
// requests an operation, because the controller's own writes to the status or to annotations must not trigger it. For
// guarded kinds it also passes every change of the spec.
func due(guarded bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return operation.RequestedOperation(e.Object) != "" || e.Object.GetDeletionTimestamp() != nil || !succeeded(e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			asks, asked := operation.RequestedOperation(after), operation.RequestedOperation(before)
			again := before.GetAnnotations()[constants.GardenerTimestamp] != after.GetAnnotations()[constants.GardenerTimestamp]
			deleted := after.GetDeletionTimestamp() != nil
			return guarded && before.GetGeneration() != after.GetGeneration() || asks != "" && (asks != asked || again) ||
				deleted && (before.GetDeletionTimestamp() == nil || again || forced(after) && !forced(before)) ||
				!injection.Same(before, after) && (deleted || !succeeded(after))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func forced(obj client.Object) bool {
	return obj.GetAnnotations()[constants.AnnotationConfirmationForceDeletion] == "true"
}

func succeeded(obj client.Object) bool {
	last := operation.OfExtension(obj)
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}
