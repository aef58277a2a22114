package extensionops

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// scheme contains the kinds of objects that WorkloadIdentity tokens are requested for.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	corev1beta1.SchemeBuilder.AddToScheme(scheme) //nolint:errcheck // of types that are compiled in
	return scheme
}()

// Status points to the fields of an object's status.
type Status struct {
	Operation **corev1beta1.LastOperation
	Error     **corev1beta1.LastError
	Observed  *int64
}

// Reporter writes the state of an operation into the status of objects in the garden.
type Reporter[T client.Object] struct {
	Garden client.Client
	Clock  clock.PassiveClock
	Of     func(T) Status
}

// progress is the progress of an operation by its state, in percent.
var progress = map[corev1beta1.LastOperationState]int32{
	corev1beta1.LastOperationStateError: 50, corev1beta1.LastOperationStateSucceeded: 100,
}

// Report writes the state of an operation, with the failure if the state is Error. The functions also make further changes.
func (r Reporter[T]) Report(ctx context.Context, obj T, t corev1beta1.LastOperationType, state corev1beta1.LastOperationState,
	description string, failure *corev1beta1.LastError, also ...func(T)) error {
	return operation.PatchStatus(ctx, r.Garden, obj, func(obj T) {
		status := r.Of(obj)
		*status.Operation = &corev1beta1.LastOperation{
			Type: t, State: state, Progress: progress[state], Description: description, LastUpdateTime: metav1.NewTime(r.Clock.Now()),
		}
		switch state {
		case corev1beta1.LastOperationStateError:
			*status.Error = failure
		case corev1beta1.LastOperationStateSucceeded:
			*status.Error, *status.Observed = nil, obj.GetGeneration()
		default:
			*status.Observed = obj.GetGeneration()
		}
		for _, change := range also {
			change(obj)
		}
	})
}
