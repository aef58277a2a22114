package controllermanager

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

const (
	// shootStateFinalizerName is the name of the controller, which is Gardener's.
	shootStateFinalizerName = "shootstate-finalizer"
	// Finalizer protects a ShootState, the same as in Gardener.
	Finalizer = "core.gardener.cloud/shootstate"
)

// ShootStateFinalizer protects the ShootState of a Shoot while its control plane moves to another Seed: a finalizer
// blocks its deletion from the beginning of the migration until the control plane is restored from it.
type ShootStateFinalizer struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootStateFinalizer) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootStateFinalizerName)
	always := component.CreationsAndUpdatesIf(func(_, _ *corev1beta1.ShootState) bool { return true })
	return component.NewControllerBuilder(mgr, shootStateFinalizerName).
		For(&corev1beta1.ShootState{}, builder.WithPredicates(always)).
		Watches(&corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(shootMoved())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// shootMoved passes Shoots whose last operation has changed so that their ShootState has to be protected or released.
func shootMoved() predicate.Predicate {
	return component.UpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		if before.Status.LastOperation == nil || after.Status.LastOperation == nil {
			return false
		}
		keepsBefore, decidedBefore := keepsShootState(before.Status.LastOperation)
		keeps, decided := keepsShootState(after.Status.LastOperation)
		return decided && (!decidedBefore || keeps != keepsBefore || before.Status.LastOperation.Type != after.Status.LastOperation.Type)
	})
}

// keepsShootState reports whether the ShootState has to be protected during an operation. If decided is false, the finalizer stays
// as it is.
func keepsShootState(operation *corev1beta1.LastOperation) (keeps, decided bool) {
	switch operation.Type {
	case corev1beta1.LastOperationTypeMigrate:
		return true, true
	case corev1beta1.LastOperationTypeRestore:
		return operation.State != corev1beta1.LastOperationStateSucceeded, true
	case corev1beta1.LastOperationTypeReconcile:
		return false, true
	default:
		return false, false
	}
}

// Reconcile protects or releases a ShootState, which has the same name as its Shoot.
func (r *ShootStateFinalizer) Reconcile(ctx context.Context, state *corev1beta1.ShootState) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(state), shoot); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the Shoot of the ShootState %s: %w", client.ObjectKeyFromObject(state), err)
	}
	if shoot.Status.LastOperation == nil {
		return reconcile.Result{}, fmt.Errorf("the Shoot %s has a ShootState, but no last operation: it is tried again until it has one",
			client.ObjectKeyFromObject(state))
	}
	keeps, decided := keepsShootState(shoot.Status.LastOperation)
	switch {
	case decided && keeps && state.DeletionTimestamp == nil:
		return reconcile.Result{}, operation.AddFinalizer(ctx, r.Client, state, Finalizer)
	case decided && !keeps:
		return reconcile.Result{}, operation.RemoveFinalizers(ctx, r.Client, state, Finalizer)
	}
	return reconcile.Result{}, nil
}
