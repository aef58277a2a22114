package controllerinstallation

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, changed())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(ofManagedResource), controllerutils.Deletions())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(ofNamespace), controllerutils.Deletions())).
		Complete(r)
}

// changed returns a predicate for new and deleted ControllerInstallations, and for changes of their spec and their deletion
// timestamp. The spec also contains the resource versions of the objects that it refers to.
func changed() predicate.Predicate {
	return controllerutils.Updates(func(before, after *corev1beta1.ControllerInstallation) bool {
		return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil
	})
}

func ofManagedResource(_ context.Context, obj client.Object) []reconcile.Request {
	return request(obj.GetLabels()[LabelInstallation])
}

func ofNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	if name, ok := OfNamespace(obj.GetName()); ok {
		return request(name)
	}
	return nil
}

func request(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
