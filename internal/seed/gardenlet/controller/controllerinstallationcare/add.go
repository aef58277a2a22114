package controllerinstallationcare

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation-care"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, predicate.Funcs{
				UpdateFunc: func(event.UpdateEvent) bool { return false },
				DeleteFunc: func(event.DeleteEvent) bool { return false },
			})).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(installationOf), changed())).
		// The token may be written after the ManagedResource is applied.
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofToken), builder.WithPredicates(tokenChanged())).
		Complete(r)
}

// changed returns a predicate for changes of the status of a ManagedResource.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
		after, ok2 := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
		return ok1 && ok2 && !equality.Semantic.DeepEqual(before.Status, after.Status)
	}}
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
	return predicate.And[client.Object](isAccess, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		renewed := func(obj metav1.Object) string {
			return obj.GetAnnotations()[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp]
		}
		return renewed(e.ObjectOld) != renewed(e.ObjectNew)
	}})
}

func ofToken(_ context.Context, obj client.Object) []reconcile.Request {
	name, ok := controllerinstallation.OfNamespace(obj.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
