package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// What a status says about operations of a type that are in progress, have failed, have succeeded.
var (
	doing = map[corev1beta1.LastOperationType]string{"Create": "Reconciling", "Reconcile": "Reconciling",
		"Restore": "Restoring", "Migrate": "Migrating", "Delete": "Deleting"}
	failed = map[corev1beta1.LastOperationType]string{"Create": "reconciling", "Reconcile": "reconciling",
		"Restore": "restoring", "Migrate": "migrating", "Delete": "deleting"}
	done = map[corev1beta1.LastOperationType]string{"Create": "reconciled", "Reconcile": "reconciled",
		"Restore": "restored", "Migrate": "migrated", "Delete": "deleted"}
)

// report writes a status, with all else that has changed in it since before.
func (t *task) report(ctx context.Context, before extensionsv1alpha1.Object, state corev1beta1.LastOperationState,
	progress int32, description string, failure *corev1beta1.LastError) error {
	if before == t.obj {
		before = t.obj.DeepCopyObject().(extensionsv1alpha1.Object)
	}
	status := t.obj.GetExtensionStatus()
	status.SetLastOperation(&corev1beta1.LastOperation{
		Type: t.kind, State: state, Progress: progress, Description: description, LastUpdateTime: metav1.NewTime(t.Clock.Now()),
	})
	if state != corev1beta1.LastOperationStateProcessing {
		status.SetLastError(failure)
		status.SetObservedGeneration(t.obj.GetGeneration())
	}
	err := operation.WriteStatus(ctx, t.Client, t.obj, before)
	if t.obj.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	return err
}

// patchWaiting writes what the operation waits for.
func (t *task) patchWaiting(ctx context.Context, before extensionsv1alpha1.Object, wait *operation.Wait) error {
	last := t.obj.GetExtensionStatus().GetLastOperation()
	description := fmt.Sprintf("%s the %s: waiting for %s", doing[t.kind], t.Kind.Title, wait.For)
	progress := min(max(wait.Progress, 1), 99)
	if last.Description == description && last.Progress == progress {
		return operation.WriteStatus(ctx, t.Client, t.obj, before) // nothing new but maybe from the actuator
	}
	return t.report(ctx, before, corev1beta1.LastOperationStateProcessing, progress, description, nil)
}

// fail writes an error, and returns it so that the operation is tried again.
func (t *task) fail(ctx context.Context, before extensionsv1alpha1.Object, cause error) error {
	now := metav1.NewTime(t.Clock.Now())
	description := fmt.Sprintf("Error %s %s: %v", failed[t.kind], t.Kind.Title, cause)
	err := t.report(ctx, before, corev1beta1.LastOperationStateError, 50, description,
		&corev1beta1.LastError{Description: description, Codes: operation.CodesOf(cause), LastUpdateTime: &now})
	return errors.Join(cause, err)
}

// failAsTold fails because an annotation says so. That it has failed is noted after the status was written: if the process
// ends in between it fails twice, and never without having been seen.
func (t *task) failAsTold(ctx context.Context, failure *injection.Failure) error {
	cause := &operation.Error{Err: errors.New(failure.Text)}
	if failure.Code != "" {
		cause.Codes = []corev1beta1.ErrorCode{failure.Code}
	}
	err := t.fail(ctx, t.obj, cause)
	if !failure.Once {
		return err
	}
	return errors.Join(err, operation.Patch(ctx, t.Client, t.obj, func(obj extensionsv1alpha1.Object) {
		annotate(obj, func(annotations map[string]string) {
			annotations[injection.AnnotationFailed] = annotations[injection.AnnotationFail]
		})
	}))
}

// succeed ends the operation.
func (t *task) succeed(ctx context.Context, before extensionsv1alpha1.Object) error {
	description := fmt.Sprintf("Successfully %s %s", done[t.kind], t.Kind.Title)
	if err := t.report(ctx, before, corev1beta1.LastOperationStateSucceeded, 100, description, nil); err != nil {
		return err
	}
	if !t.keeps() {
		if err := t.release(ctx); err != nil || t.kind == corev1beta1.LastOperationTypeDelete {
			return err
		}
	}
	// What asked to migrate or restore stays until all is done, so that it continues after a restart.
	err := operation.Patch(ctx, t.Client, t.obj, func(obj extensionsv1alpha1.Object) {
		annotate(obj, func(annotations map[string]string) {
			delete(annotations, injection.AnnotationStarted)
			if t.kind == corev1beta1.LastOperationTypeMigrate || t.kind == corev1beta1.LastOperationTypeRestore {
				delete(annotations, constants.GardenerOperation)
			}
		})
	})
	if t.kind == corev1beta1.LastOperationTypeMigrate {
		return client.IgnoreNotFound(err) // it may have been deleted meanwhile
	}
	return err
}

// annotate changes annotations.
func annotate(obj metav1.Object, change func(map[string]string)) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	change(annotations)
	obj.SetAnnotations(annotations)
}
