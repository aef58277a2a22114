package provider

import (
	"context"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watchMachines triggers a reconciliation of the Workers in a namespace when a MachineDeployment changes, or a Machine is
// gone. It finds Workers in the cache.
func watchMachines(b *builder.Builder, mgr manager.Manager) error {
	cache := mgr.GetCache()
	workers := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := &extensionsv1alpha1.WorkerList{}
		if cache.List(ctx, list, client.InNamespace(obj.GetNamespace())) != nil {
			return nil // a waiting Worker also polls
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		}
		return requests
	})
	removed := predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	b.Watches(&machinev1alpha1.MachineDeployment{}, workers)
	b.Watches(&machinev1alpha1.Machine{}, workers, builder.WithPredicates(removed))
	return nil
}
