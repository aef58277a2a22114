package bastion

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// Reasons of the condition BastionReady, as in Gardener.
const (
	ReasonSuccessfullyReconciled = "SuccessfullyReconciled"
	ReasonFailedReconciling      = "FailedReconciling"
	ReasonDeletionInProgress     = "DeletionInProgress"
)

// patchStatus copies the status of a Bastion from the seed to the garden once the extension is done with it.
func (r *Reconciler) patchStatus(ctx context.Context, bastion *operationsv1alpha1.Bastion, extension *extensionsv1alpha1.Bastion,
	failure *corev1beta1.LastError) error {
	if failure != nil {
		return r.fail(ctx, bastion,
			&corev1beta1.LastError{Codes: failure.Codes, Description: fmt.Sprintf("Error while waiting for %s %s to become ready: %s",
				extensionsv1alpha1.BastionResource, client.ObjectKeyFromObject(extension), failure.Description)})
	}
	if last := extension.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded ||
		operation.RequestedOperation(extension) != "" {
		return nil // the operation continues: the previous status holds until it ends
	}
	if its := conditions.Get(extension.Status.Conditions, operationsv1alpha1.BastionReady); its != nil &&
		its.Status != corev1beta1.ConditionTrue {
		return r.unready(ctx, bastion, its.Reason, its.Message, &corev1beta1.LastError{Codes: its.Codes})
	}
	// The port is written first, so that it is there when the Bastion becomes ready.
	err := operation.Patch(ctx, r.GardenClient, bastion, func(bastion *operationsv1alpha1.Bastion) {
		if port, ok := extension.Annotations[operation.AnnotationSSHPort]; ok {
			metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, operation.AnnotationSSHPort, port)
		} else {
			delete(bastion.Annotations, operation.AnnotationSSHPort)
		}
	})
	if err != nil {
		return err
	}
	return operation.PatchStatus(ctx, r.GardenClient, bastion, func(bastion *operationsv1alpha1.Bastion) {
		bastion.Status.Ingress = extension.Status.Ingress.DeepCopy()
		bastion.Status.ObservedGeneration = ptr.To(bastion.Generation)
		r.set(bastion, corev1beta1.Condition{
			Status: corev1beta1.ConditionTrue, Reason: ReasonSuccessfullyReconciled, Message: "The bastion has been reconciled successfully."})
	})
}

// fail reports that a Bastion is not ready because of a failure.
func (r *Reconciler) fail(ctx context.Context, bastion *operationsv1alpha1.Bastion, failure *corev1beta1.LastError) error {
	return r.unready(ctx, bastion, ReasonFailedReconciling, failure.Description, failure)
}

// unready reports that a Bastion is not ready. The address stays, because the Bastion may become ready again.
func (r *Reconciler) unready(ctx context.Context, bastion *operationsv1alpha1.Bastion, reason, message string,
	failure *corev1beta1.LastError) error {
	now := corev1beta1.Condition{Status: corev1beta1.ConditionFalse, Reason: reason, Message: message}
	if failure != nil {
		now.Codes = failure.Codes
	}
	return operation.PatchStatus(ctx, r.GardenClient, bastion, func(bastion *operationsv1alpha1.Bastion) { r.set(bastion, now) })
}

func (r *Reconciler) set(bastion *operationsv1alpha1.Bastion, now corev1beta1.Condition) {
	now.Type = operationsv1alpha1.BastionReady
	bastion.Status.Conditions, _ = conditions.Set(bastion.Status.Conditions, now, r.Clock)
}
