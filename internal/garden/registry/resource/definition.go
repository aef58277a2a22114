// Package resource creates the storage of a Gardener resource from a Definition, which has only what is specific to
// the resource: how it is validated, when its generation is increased, which columns it has. The generic registry of
// k8s.io/apiserver does the rest. The package may import scheme, and nothing else of the project.
package resource

import (
	"context"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// Object is a pointer to an API object in its internal version.
type Object interface {
	runtime.Object
	metav1.Object
}

// Definition is what is specific to a resource. Functions that are nil do nothing.
type Definition[T Object] struct {
	// Resource, Kind, ShortNames and Categories are the names of the resource. Its singular name is the kind in lower
	// case.
	Resource   schema.GroupResource
	Kind       string
	ShortNames []string
	Categories []string
	// Versions are the versions in which the resource is served, all from the same storage.
	Versions []string
	// Namespaced says whether the resource is namespaced.
	Namespaced bool
	// AllowUnconditionalUpdate allows updates without a resource version.
	AllowUnconditionalUpdate bool

	// CopySpec and CopyStatus copy the spec and the status of an object to another one. Without CopySpec, there is no
	// status subresource; without CopyStatus, clients write the status together with the object.
	CopySpec, CopyStatus func(to, from T)
	// SpecChanged reports whether an update increases the generation; a deletion always does. It may remove an
	// operation annotation that the new generation answers. Without SpecChanged, objects have no generation.
	SpecChanged func(updated, old T) bool

	// PrepareForCreate and PrepareForUpdate run before the validation and after CopyStatus; PrepareForUpdate also
	// runs before SpecChanged. PrepareStatus runs before the validation of updates through the status subresource.
	PrepareForCreate func(ctx context.Context, obj T)
	PrepareForUpdate func(ctx context.Context, updated, old T)
	PrepareStatus    func(ctx context.Context, updated, old T)
	// Canonicalize runs after validation, and for updates of the status as well.
	Canonicalize func(obj T)

	Validate             func(obj T) field.ErrorList
	ValidateUpdate       func(updated, old T) field.ErrorList
	ValidateStatusUpdate func(updated, old T) field.ErrorList
	// Warnings are for the client that creates (old is the zero value) or updates an object.
	Warnings func(updated, old T) []string

	// Fields returns the selectable fields besides name and namespace. Indexed are the fields by which watches and
	// lists often select, the most frequent one first.
	Fields  func(obj T) fields.Set
	Indexed []string
	// Indexes are further indexes, for Store.ByIndex: each returns the values of an object.
	Indexes map[string]func(obj T) []string

	// Columns are what kubectl prints after Name; Age comes last if it is not among them.
	Columns []Column[T]
}

// newObject returns an empty object, or an empty list of objects.
func (d *Definition[T]) newObject(suffix string) runtime.Object {
	gvk := schema.GroupVersionKind{Group: d.Resource.Group, Version: runtime.APIVersionInternal, Kind: d.Kind + suffix}
	obj, err := scheme.Scheme.New(gvk)
	utilruntime.Must(err)
	return obj
}

// Column is a printed column.
type Column[T Object] struct {
	Name string
	// Wide says that the column is printed only with -o wide.
	Wide bool
	// Type is string if empty.
	Type        string
	Description string
	Value       func(obj T) any
}

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

// ConsumeOperationAnnotation removes the annotation gardener.cloud/operation if it has one of these values, and reports
// whether it did. It is for operations that the API server itself answers, by increasing the generation.
func ConsumeOperationAnnotation(obj metav1.Object, operations ...string) bool {
	if !HasOperationAnnotation(obj, operations...) {
		return false
	}
	annotations := obj.GetAnnotations()
	delete(annotations, v1beta1constants.GardenerOperation)
	obj.SetAnnotations(annotations)
	return true
}
