package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// Verbs in the status for operations that are in progress or have failed, and for those that have succeeded.
var (
	doing = map[corev1beta1.LastOperationType]string{"Create": "Reconciling", "Reconcile": "Reconciling",
		"Restore": "Restoring", "Migrate": "Migrating", "Delete": "Deleting"}
	done = map[corev1beta1.LastOperationType]string{"Create": "reconciled", "Reconcile": "reconciled",
		"Restore": "restored", "Migrate": "migrated", "Delete": "deleted"}
)

// report writes the last operation, and all other changes of the status since before.
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

// patchWaiting reports what the operation waits for.
func (t *task) patchWaiting(ctx context.Context, before extensionsv1alpha1.Object, wait *operation.Wait) error {
	last := t.obj.GetExtensionStatus().GetLastOperation()
	description := fmt.Sprintf("%s the %s: waiting for %s", doing[t.kind], t.Kind.Title, wait.For)
	progress := min(max(wait.Progress, 1), 99)
	if last.Description == description && last.Progress == progress {
		return operation.WriteStatus(ctx, t.Client, t.obj, before) // only the actuator may have changed the status
	}
	return t.report(ctx, before, corev1beta1.LastOperationStateProcessing, progress, description, nil)
}

// fail reports an error in the status, and returns it so that the operation is retried.
func (t *task) fail(ctx context.Context, before extensionsv1alpha1.Object, cause error) error {
	now := metav1.NewTime(t.Clock.Now())
	description := fmt.Sprintf("Error %s %s: %v", strings.ToLower(doing[t.kind]), t.Kind.Title, cause)
	err := t.report(ctx, before, corev1beta1.LastOperationStateError, 50, description,
		&corev1beta1.LastError{Description: description, Codes: operation.CodesOf(cause), LastUpdateTime: &now})
	return errors.Join(cause, err)
}

// claim reports whether a failure happens to this object. One of a Shoot that happens once happens to the first of its
// objects, which is recorded in the Cluster, so that it is the same one after a restart.
func (t *task) claim(ctx context.Context, failure *injection.Failure) (isOwn bool, err error) {
	if failure.Record == "" {
		return true, nil
	}
	cluster := &extensionsv1alpha1.Cluster{}
	if err := t.Reader.Get(ctx, client.ObjectKey{Name: t.obj.GetNamespace()}, cluster); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	record, isOwn := failure.Claim(cluster.Annotations, t.Kind.Title, t.obj)
	if !isOwn || cluster.Annotations[failure.Record] == record {
		return isOwn, nil
	}
	before := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, failure.Record, record)
	return true, t.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// failAsInjected reports a failure that an annotation requests. It records the failure only after the status is written: if the
// process ends in between, the operation fails twice, but never unnoticed.
func (t *task) failAsInjected(ctx context.Context, failure *injection.Failure) error {
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

// succeed reports the success and completes the operation.
func (t *task) succeed(ctx context.Context, before extensionsv1alpha1.Object) error {
	description := fmt.Sprintf("Successfully %s %s", done[t.kind], t.Kind.Title)
	if err := t.report(ctx, before, corev1beta1.LastOperationStateSucceeded, 100, description, nil); err != nil {
		return err
	}
	if !t.keepsFinalizers() {
		if err := t.release(ctx); err != nil || t.kind == corev1beta1.LastOperationTypeDelete {
			return err
		}
	}
	// The annotation that requested a migration or restoration is removed last, so that it continues after a restart.
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

func annotate(obj metav1.Object, change func(map[string]string)) {
	annotations := map[string]string{}
	maps.Copy(annotations, obj.GetAnnotations())
	change(annotations)
	obj.SetAnnotations(annotations)
}
