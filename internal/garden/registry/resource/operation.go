package resource

import (
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SpecEquality compares specs as the API does: nil and empty are equal, quantities and times by value.
func SpecEquality(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// Operations are the operations that the annotation gardener.cloud/operation asks for; several are separated by
// semicolons.
func Operations(obj metav1.Object) []string {
	value := obj.GetAnnotations()[v1beta1constants.GardenerOperation]
	if value == "" {
		return nil
	}
	return strings.Split(value, v1beta1constants.GardenerOperationsSeparator)
}

// HasOperation says whether an operation is asked for.
func HasOperation(obj metav1.Object, operation string) bool {
	return slices.Contains(Operations(obj), operation)
}

// TakeOperation takes an operation away from the annotation and says whether it was there.
func TakeOperation(obj metav1.Object, operation string) bool {
	operations := Operations(obj)
	left := slices.DeleteFunc(slices.Clone(operations), func(o string) bool { return o == operation })
	if len(left) == len(operations) {
		return false
	}
	annotations := obj.GetAnnotations()
	if len(left) == 0 {
		delete(annotations, v1beta1constants.GardenerOperation)
	} else {
		annotations[v1beta1constants.GardenerOperation] = strings.Join(left, v1beta1constants.GardenerOperationsSeparator)
	}
	obj.SetAnnotations(annotations)
	return true
}
