package controllerinstallationrequired

import (
	"context"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation-required"

// AddToManager adds the controller to the manager of the seed. It watches all
// kinds of extension resources, so their CRDs must exist.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	b := component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, predicate.Funcs{
				UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
				DeleteFunc: func(event.DeleteEvent) bool { return false },
			}))
	for _, kind := range controllerutils.ExtensionKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), kind.Object,
			handler.EnqueueRequestsFromMapFunc(r.responsibleFor(kind.Kind)), predicate.NewPredicateFuncs(counts), typeChanged()))
	}
	return b.Complete(r)
}

// typeChanged returns a predicate for changes that affect which types of extension resources exist.
func typeChanged() predicate.Predicate {
	return controllerutils.Updates(func(before, after extensionsv1alpha1.Object) bool {
		return before.GetExtensionSpec().GetExtensionType() != after.GetExtensionSpec().GetExtensionType() || counts(before) != counts(after)
	})
}

// responsibleFor returns a map function from an extension resource of a kind to the installations whose extension is
// responsible for it.
func (r *Reconciler) responsibleFor(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		extension, ok := obj.(extensionsv1alpha1.Object)
		if !ok {
			return nil
		}
		all := &corev1beta1.ControllerInstallationList{}
		if err := r.GardenClient.List(ctx, all); err != nil {
			logf.FromContext(ctx).Error(err, "Listing ControllerInstallations", "extensionKind", kind)
			return nil
		}
		for i := range all.Items {
			installation := &all.Items[i]
			registration := &corev1beta1.ControllerRegistration{}
			if !controllerinstallation.Own(installation, r.SeedName) ||
				r.GardenClient.Get(ctx, client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}, registration) != nil {
				continue // the reconciliation of the installation reports the error
			}
			if slices.ContainsFunc(registration.Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
				return resource.Kind == kind && resource.Type == extension.GetExtensionSpec().GetExtensionType()
			}) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: installation.Name}})
			}
		}
		return requests
	}
}
