package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// actuator does the work for extension resources. Each function can be repeated: it is called again after an error and after a
// restart, and with an object for which there is nothing to do. They may change the status, which is written afterwards.
type actuator[T extensionsv1alpha1.Object] interface {
	// reconcile makes what the spec wants.
	reconcile(ctx context.Context, obj T) error
	// restore does the same in a new seed, from what migrate has left in status.state.
	restore(ctx context.Context, obj T) error
	// migrate removes what is in this seed, and keeps in status.state what the next one needs.
	migrate(ctx context.Context, obj T) error
	// delete removes all.
	delete(ctx context.Context, obj T) error
}

// reconciler does what Gardener asks of extension resources of one type: it calls the actuator for the operation that the
// annotation gardener.cloud/operation requests, and reports in status.lastOperation how it went.
type reconciler[T extensionsv1alpha1.Object] struct {
	client.Client
	extensionType string
	new           func() T
	actuator      actuator[T]
}

func add[T extensionsv1alpha1.Object](mgr ctrl.Manager, extensionType string, object T, a actuator[T]) error {
	r := &reconciler[T]{mgr.GetClient(), extensionType, func() T { return object.DeepCopyObject().(T) }, a}
	return ctrl.NewControllerManagedBy(mgr).Named(extensionType).For(object).Complete(r)
}

// finalizer keeps an object until its controller has removed what it has made for it.
func (r *reconciler[T]) finalizer() string { return "extensions.gardener.cloud/" + r.extensionType }

// Reconcile reconciles one object.
func (r *reconciler[T]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	obj := r.new()
	if err := r.Get(ctx, request.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	operation, act := r.due(obj)
	if act == nil {
		return ctrl.Result{}, nil
	}
	keep := operation != corev1beta1.LastOperationTypeDelete && operation != corev1beta1.LastOperationTypeMigrate
	if keep && controllerutil.AddFinalizer(obj, r.finalizer()) {
		if err := r.Update(ctx, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.report(ctx, obj, operation, corev1beta1.LastOperationStateProcessing, 10, "has begun", nil); err != nil {
		return ctrl.Result{}, err
	}
	if err := act(ctx, obj); err != nil {
		if reported := r.report(ctx, obj, operation, corev1beta1.LastOperationStateError, 50, err.Error(), err); reported != nil {
			return ctrl.Result{}, reported
		}
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, obj, operation, corev1beta1.LastOperationStateSucceeded, 100, "is done", nil); err != nil {
		return ctrl.Result{}, err
	}
	// The request is removed last, so that a restart repeats what may not have been done.
	before := obj.DeepCopyObject().(client.Object)
	annotations := obj.GetAnnotations()
	delete(annotations, constants.GardenerOperation)
	obj.SetAnnotations(annotations)
	if !keep {
		controllerutil.RemoveFinalizer(obj, r.finalizer())
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, obj, client.MergeFrom(before)))
}

// due returns the operation that an object needs now, and what does it; nil for none.
func (r *reconciler[T]) due(obj T) (corev1beta1.LastOperationType, func(context.Context, T) error) {
	requested, last := obj.GetAnnotations()[constants.GardenerOperation], obj.GetExtensionStatus().GetLastOperation()
	migrated := last != nil && last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded
	switch {
	case obj.GetExtensionSpec().GetExtensionType() != r.extensionType:
		return "", nil
	case requested == constants.GardenerOperationMigrate:
		return corev1beta1.LastOperationTypeMigrate, r.actuator.migrate
	case obj.GetDeletionTimestamp() != nil:
		if !controllerutil.ContainsFinalizer(obj, r.finalizer()) {
			return "", nil
		}
		return corev1beta1.LastOperationTypeDelete, r.actuator.delete
	case requested == constants.GardenerOperationRestore:
		return corev1beta1.LastOperationTypeRestore, r.actuator.restore
	case requested == constants.GardenerOperationWaitForState, migrated:
		return "", nil // the gardenlet has not written the state yet, or another seed has the object now
	case last == nil:
		return corev1beta1.LastOperationTypeCreate, r.actuator.reconcile
	case requested == constants.GardenerOperationReconcile, last.State != corev1beta1.LastOperationStateSucceeded:
		return corev1beta1.LastOperationTypeReconcile, r.actuator.reconcile
	}
	return "", nil
}

// report writes the state of an operation. The gardenlet waits for state Succeeded, the observed generation, and a time after
// that of its request.
func (r *reconciler[T]) report(ctx context.Context, obj T, operation corev1beta1.LastOperationType, state corev1beta1.LastOperationState,
	progress int32, how string, failure error) error {
	status, now := obj.GetExtensionStatus(), metav1.NewTime(time.Now())
	status.SetLastOperation(&corev1beta1.LastOperation{Type: operation, State: state, Progress: progress, LastUpdateTime: now,
		Description: fmt.Sprintf("%s of %s: %s", operation, strings.TrimPrefix(r.finalizer(), "extensions.gardener.cloud/"), how)})
	status.SetObservedGeneration(obj.GetGeneration())
	status.SetLastError(nil)
	if failure != nil {
		status.SetLastError(&corev1beta1.LastError{Description: failure.Error(), LastUpdateTime: &now})
	}
	return client.IgnoreNotFound(r.Status().Update(ctx, obj))
}
