package controllerinstallation

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.GardenConfig = cmp.Or(r.GardenConfig, garden.GetConfig())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, changed())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(ofManagedResource), gone())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(ofNamespace), gone())).
		Complete(r)
}

// changed returns a predicate for new ControllerInstallations, and for changes of their spec and their deletion
// timestamp. The spec also contains the resource versions of the objects that it refers to.
func changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*corev1beta1.ControllerInstallation)
			after, ok2 := e.ObjectNew.(*corev1beta1.ControllerInstallation)
			return ok1 && ok2 && (!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
				before.DeletionTimestamp == nil && after.DeletionTimestamp != nil)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
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
