package machines

import (
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
)

const (
	// concurrency is the number of machines that are reconciled at the same time: deleting an instance takes a while.
	concurrency = 10
	// Delays of the exponential backoff for an instance that could not be created.
	retryBase, retryMax = 200 * time.Millisecond, 3 * time.Minute
)

// AddToManager adds the machine controller to a manager, whose client must read MachineDeployments, MachineSets, Machines,
// MachineClasses, Workers, Clusters and Secrets directly from the seed. apiServer is that of Shoots.
func AddToManager(mgr manager.Manager, c Cloud, clk clock.WithTicker, guard *Guard, apiServer func(namespace string) string) error {
	shoots := &Shoots{Seed: mgr.GetClient(), Clock: clk, APIServer: apiServer, Connect: Connect}
	if err := mgr.Add(shoots); err != nil {
		return fmt.Errorf("adding the clients of shoots: %w", err)
	}
	deployments := &DeploymentReconciler{Client: mgr.GetClient(), Clock: clk, Guard: guard}
	err := component.NewControllerBuilder(mgr, "machinedeployment", options()).
		For(&machinev1alpha1.MachineDeployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(deploymentOf), builder.WithPredicates(affectsDeployment())).
		Complete(deployments)
	if err != nil {
		return fmt.Errorf("adding the controller of MachineDeployments: %w", err)
	}
	machines := &MachineReconciler{Client: mgr.GetClient(), Cloud: c, Shoots: shoots, Clock: clk, Guard: guard}
	o := options()
	o.MaxConcurrentReconciles = concurrency
	err = component.NewControllerBuilder(mgr, "machine", o).
		For(&machinev1alpha1.Machine{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			shoots.Changed = func(key client.ObjectKey) { queue.Add(reconcile.Request{NamespacedName: key}) }
			return nil
		})).
		Complete(machines)
	if err != nil {
		return fmt.Errorf("adding the controller of Machines: %w", err)
	}
	return nil
}

func options() controller.Options {
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax)}
}

// deploymentOf returns a request for the MachineDeployment of a Machine.
func deploymentOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[LabelDeployment]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// affectsDeployment returns a predicate for changes of a Machine that affect the status or the next step of its MachineDeployment.
func affectsDeployment() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*machinev1alpha1.Machine)
			after, ok2 := e.ObjectNew.(*machinev1alpha1.Machine)
			return !ok1 || !ok2 || before.Status.CurrentStatus.Phase != after.Status.CurrentStatus.Phase ||
				before.Status.LastOperation.State != after.Status.LastOperation.State ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
