package operation

import (
	"reflect"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// AnnotationSSHPort is the annotation of a Bastion, in the seed and in the garden, that says which port of the address in
// status.ingress its SSH server is on.
const AnnotationSSHPort = "gardenlite.dev/ssh-port"

// Of is the operation that an annotation of the object asks for.
func Of(obj metav1.Object) string { return obj.GetAnnotations()[constants.GardenerOperation] }

// Type is the type of the operation that the object is due for. One that has not succeeded continues.
func Type(obj metav1.Object, last *corev1beta1.LastOperation) corev1beta1.LastOperationType {
	switch {
	case Of(obj) == constants.GardenerOperationMigrate:
		return corev1beta1.LastOperationTypeMigrate
	case obj.GetDeletionTimestamp() != nil:
		return corev1beta1.LastOperationTypeDelete
	case Of(obj) == constants.GardenerOperationRestore:
		return corev1beta1.LastOperationTypeRestore
	case last == nil:
		return corev1beta1.LastOperationTypeCreate
	case last.State == corev1beta1.LastOperationStateSucceeded || last.Type == corev1beta1.LastOperationTypeDelete:
		return corev1beta1.LastOperationTypeReconcile
	}
	return last.Type
}

// Is says whether the last operation is of this type and in this state.
func Is(last *corev1beta1.LastOperation, t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) bool {
	return last != nil && last.Type == t && last.State == state
}

// Failing says whether an operation has ended without success.
func Failing(last *corev1beta1.LastOperation) bool {
	return last != nil && (last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed)
}

// Ended passes what tells that an operation on an object has ended, well or not, and the object's removal. last
// gives the object's last operation.
func Ended(last func(client.Object) *corev1beta1.LastOperation) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return Of(e.Object) != constants.GardenerOperationReconcile && ended(last(e.Object))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			switch operation := Of(e.ObjectNew); operation {
			case "":
			case constants.GardenerOperationMigrate, constants.GardenerOperationRestore:
				// These stay until the operation has ended: the status is of before when they have just come.
				if Of(e.ObjectOld) != operation {
					return false
				}
			default:
				return false
			}
			// Of a migration and a restoration the end is told twice: by the status, and then by what asked for it going.
			now := last(e.ObjectNew)
			return ended(now) && (!reflect.DeepEqual(last(e.ObjectOld), now) || Of(e.ObjectOld) != Of(e.ObjectNew))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func ended(last *corev1beta1.LastOperation) bool {
	return last != nil && (last.State == corev1beta1.LastOperationStateSucceeded || Failing(last))
}

// OfExtension is the last operation of an extension resource, for Ended.
func OfExtension(obj client.Object) *corev1beta1.LastOperation {
	if extension, ok := obj.(extensionsv1alpha1.Object); ok {
		return extension.GetExtensionStatus().GetLastOperation()
	}
	return nil
}
