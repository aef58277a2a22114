package seedmanagementvalidation

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// nonNegative refuses a negative number. It accepts nil.
func nonNegative[T ~int | ~int32 | ~int64](value *T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), path)
}

func nonNegativeDuration(value *metav1.Duration, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return nonNegative(&value.Duration, path)
}

// supported refuses a value that is not among the allowed ones.
func supported[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// optional applies a rule to a value that may be nil.
func optional[T any](value *T, path *field.Path, rule func(*T, *field.Path) field.ErrorList) field.ErrorList {
	if value == nil {
		return nil
	}
	return rule(value, path)
}

// ---- operations ----

func operationPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(constants.GardenerOperation)
}

// validateOperation refuses an operation in the annotation that is not one of the allowed ones.
func validateOperation(annotations map[string]string, allowed ...string) field.ErrorList {
	operation := annotations[constants.GardenerOperation]
	if operation == "" {
		return nil
	}
	return supported(operation, operationPath(), allowed...)
}

// validateOperationUpdate refuses to replace an operation that is not done.
func validateOperationUpdate(newAnnotations, oldAnnotations map[string]string) field.ErrorList {
	newOperation, oldOperation := newAnnotations[constants.GardenerOperation], oldAnnotations[constants.GardenerOperation]
	if newOperation == "" || oldOperation == "" || newOperation == oldOperation {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(operationPath(), fmt.Sprintf("must not be %q before the operation %q is done", newOperation, oldOperation))}
}
