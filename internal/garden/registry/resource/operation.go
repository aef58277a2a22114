package resource

import (
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/names"
)

// Equal compares semantically, as the API does: nil equals empty, and quantities and times are compared by value.
func Equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// HasOperationAnnotation reports whether the annotation gardener.cloud/operation has one of these values.
func HasOperationAnnotation(obj metav1.Object, operations ...string) bool {
	value, ok := obj.GetAnnotations()[v1beta1constants.GardenerOperation]
	return ok && slices.Contains(operations, value)
}

// GenerateName generates a name for an object without one, also if generateName is empty, as Gardener does for bindings
// and the objects of the group security.gardener.cloud.
func GenerateName(obj metav1.Object) {
	if obj.GetName() == "" {
		obj.SetName(names.SimpleNameGenerator.GenerateName(obj.GetGenerateName()))
	}
}

// ConsumeOperationAnnotation removes the annotation gardener.cloud/operation if it has one of these values, and reports whether it
// did. It is for operations that the API server itself answers, by increasing the generation.
func ConsumeOperationAnnotation(obj metav1.Object, operations ...string) bool {
	if !HasOperationAnnotation(obj, operations...) {
		return false
	}
	annotations := obj.GetAnnotations()
	delete(annotations, v1beta1constants.GardenerOperation)
	obj.SetAnnotations(annotations)
	return true
}
