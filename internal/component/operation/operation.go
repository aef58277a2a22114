package operation

import (
	"errors"
	"reflect"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// AnnotationSSHPort is the annotation of a Bastion, in the seed and in the garden, with the port of the SSH server at
// the address in status.ingress.
const AnnotationSSHPort = "gardenlite.dev/ssh-port"

// RequestedOperation returns the operation that the operation annotation of the object requests, empty if there is none.
func RequestedOperation(obj metav1.Object) string {
	return obj.GetAnnotations()[constants.GardenerOperation]
}

// DueOperationType returns the type of the operation that the object is due for. An operation that has not succeeded continues.
func DueOperationType(obj metav1.Object, last *corev1beta1.LastOperation) corev1beta1.LastOperationType {
	switch {
	case RequestedOperation(obj) == constants.GardenerOperationMigrate:
		return corev1beta1.LastOperationTypeMigrate
	case obj.GetDeletionTimestamp() != nil:
		return corev1beta1.LastOperationTypeDelete
	case RequestedOperation(obj) == constants.GardenerOperationRestore:
		return corev1beta1.LastOperationTypeRestore
	case last == nil:
		return corev1beta1.LastOperationTypeCreate
	case last.State == corev1beta1.LastOperationStateSucceeded || last.Type == corev1beta1.LastOperationTypeDelete:
		return corev1beta1.LastOperationTypeReconcile
	}
	return last.Type
}

// Is reports whether the last operation has this type and this state.
func Is(last *corev1beta1.LastOperation, t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) bool {
	return last != nil && last.Type == t && last.State == state
}

// Failing reports whether the last operation has ended without success.
func Failing(last *corev1beta1.LastOperation) bool {
	return last != nil && (last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed)
}

// OperationEndedPredicate returns a predicate for the events that report the end of an operation on an object, successful or not, and for
// the deletion of the object. last returns the last operation of the object.
func OperationEndedPredicate(last func(client.Object) *corev1beta1.LastOperation) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return RequestedOperation(e.Object) != constants.GardenerOperationReconcile && ended(last(e.Object))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			switch operation := RequestedOperation(e.ObjectNew); operation {
			case "":
			case constants.GardenerOperationMigrate, constants.GardenerOperationRestore:
				// These annotations stay until the end. When they are added, the status is that of the operation before.
				if RequestedOperation(e.ObjectOld) != operation {
					return false
				}
			default:
				return false
			}
			// The end of a migration or restoration causes two events: a new status, and the removal of the annotation.
			now := last(e.ObjectNew)
			return ended(now) && (!reflect.DeepEqual(last(e.ObjectOld), now) || RequestedOperation(e.ObjectOld) != RequestedOperation(e.ObjectNew))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func ended(last *corev1beta1.LastOperation) bool {
	return last != nil && (last.State == corev1beta1.LastOperationStateSucceeded || Failing(last))
}

// OfExtension returns the last operation of an extension resource, for OperationEndedPredicate.
func OfExtension(obj client.Object) *corev1beta1.LastOperation {
	if extension, ok := obj.(extensionsv1alpha1.Object); ok {
		return extension.GetExtensionStatus().GetLastOperation()
	}
	return nil
}

// ForceGrace and ForceLimit are how long an extension may take to release its resources when an object is
// force-deleted: ForceGrace if the extension fails or does not answer, ForceLimit if it is working. Gardener's values
// are 30 s and 5 min, too.
const (
	ForceGrace = 30 * time.Second
	ForceLimit = 5 * time.Minute
)

// AskedAt returns when an extension was last asked for an operation on an object, the zero time if it never was.
func AskedAt(obj metav1.Object) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, obj.GetAnnotations()[constants.GardenerTimestamp]) // the zero time after an error
	return at
}

// ForceDeletionTimedOut reports whether the time that an extension has for the forced deletion of an object has passed.
func ForceDeletionTimedOut(obj extensionsv1alpha1.Object, now time.Time) bool {
	asked, grace := AskedAt(obj), ForceGrace
	last := obj.GetExtensionStatus().GetLastOperation()
	if Is(last, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing) &&
		!last.LastUpdateTime.Time.Before(asked.Truncate(time.Second)) { // timestamps in a status have no fractions of seconds
		grace = ForceLimit
	}
	return now.Sub(asked) >= grace
}

// Error is an error with Gardener's error codes.
type Error struct {
	Err   error
	Codes []corev1beta1.ErrorCode
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Wait is the error of an actuator that has nothing to do until something else has happened. The actuator is called
// again after a time, and the operation continues.
type Wait struct {
	// For is what the actuator waits for. It is part of the error message, and so of the status.
	For string
	// After is the delay before the next call.
	After time.Duration
	// Progress is the progress of the operation, from 1 to 99 percent.
	Progress int32
}

func (w *Wait) Error() string { return "waiting for " + w.For }

// ConfigurationProblem returns an error with the code for problems that persist until a user corrects the object.
func ConfigurationProblem(err error) error {
	return &Error{err, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}}
}

func CodesOf(err error) []corev1beta1.ErrorCode {
	if coded := (*Error)(nil); errors.As(err, &coded) {
		return coded.Codes
	}
	return nil
}
