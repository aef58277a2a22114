package controllerinstallationcare

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation-care"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, controllerutils.Creations())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(installationOf), changed())).
		// The token may be written after the ManagedResource is applied.
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofToken), builder.WithPredicates(tokenChanged())).
		Complete(r)
}

// changed returns a predicate for changes of the status of a ManagedResource.
func changed() predicate.Predicate {
	return controllerutils.Updates(func(before, after *resourcesv1alpha1.ManagedResource) bool {
		return !equality.Semantic.DeepEqual(before.Status, after.Status)
	})
}

func installationOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[controllerinstallation.LabelInstallation]
	if name == "" || obj.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// tokenChanged returns a predicate for access Secrets that are created or deleted, or whose token was renewed.
func tokenChanged() predicate.Predicate {
	isAccess := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == controllerinstallation.AccessSecretName })
	return predicate.And[client.Object](isAccess, controllerutils.Updates(func(before, after client.Object) bool {
		const renewal = resourcesv1alpha1.ServiceAccountTokenRenewTimestamp
		return before.GetAnnotations()[renewal] != after.GetAnnotations()[renewal]
	}))
}

func ofToken(_ context.Context, obj client.Object) []reconcile.Request {
	name, ok := controllerinstallation.OfNamespace(obj.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
