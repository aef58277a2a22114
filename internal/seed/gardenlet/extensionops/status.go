package extensionops

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// Status points to the fields of an object's status.
type Status struct {
	Operation **corev1beta1.LastOperation
	Error     **corev1beta1.LastError
	Observed  *int64
}

// Reporter writes the state of an operation into the status of objects in the garden.
type Reporter[T client.Object] struct {
	*controllerutils.Base
	Of func(T) Status
}

// progress is the progress of an operation by its state, in percent.
var progress = map[corev1beta1.LastOperationState]int32{
	corev1beta1.LastOperationStateError: 50, corev1beta1.LastOperationStateSucceeded: 100,
}

// Report writes the state of an operation. The functions make further changes. It fails with a conflict if the object has
// changed since it was read: from an outdated object the patch would contain only a part of the new state.
func (r Reporter[T]) Report(ctx context.Context, obj T, t corev1beta1.LastOperationType, state corev1beta1.LastOperationState,
	description string, also ...func(T)) error {
	return operation.PatchStatusExclusively(ctx, r.GardenClient, obj, func(obj T) {
		status := r.Of(obj)
		*status.Operation = &corev1beta1.LastOperation{
			Type: t, State: state, Progress: progress[state], Description: description, LastUpdateTime: metav1.NewTime(r.Clock.Now()),
		}
		if state != corev1beta1.LastOperationStateError {
			*status.Observed = obj.GetGeneration()
		}
		if state == corev1beta1.LastOperationStateSucceeded {
			*status.Error = nil
		}
		for _, change := range also {
			change(obj)
		}
	})
}

// Fail reports the failure of an operation in an event and in the status.
func (r Reporter[T]) Fail(ctx context.Context, obj T, t corev1beta1.LastOperationType, description string,
	failure *corev1beta1.LastError) error {
	reason, action := corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile
	switch t {
	case corev1beta1.LastOperationTypeDelete:
		reason, action = corev1beta1.EventDeleteError, corev1beta1.EventActionDelete
	case corev1beta1.LastOperationTypeMigrate:
		action = corev1beta1.EventActionMigrate
	}
	r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, reason, action, "%s", failure.Description)
	return r.Report(ctx, obj, t, corev1beta1.LastOperationStateError, description, func(obj T) { *r.Of(obj).Error = failure })
}
