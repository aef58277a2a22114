package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is a pointer to an API object in its internal version.
type Object interface {
	runtime.Object
	metav1.Object
}

// Definition says what is particular to a resource. Fields that are nil do nothing.
type Definition[T Object] struct {
	// Resource, Singular, ShortNames and Categories are its names.
	Resource   schema.GroupResource
	Singular   string
	ShortNames []string
	Categories []string
	// Versions are those that it is served in, all from the same storage.
	Versions []string
	// Namespaced says where its objects live.
	Namespaced bool
	// Unconditional says that an update need not name a resource version.
	Unconditional bool

	New     func() T
	NewList func() runtime.Object

	// CopySpec and CopyStatus copy a part of an object to another. Without CopySpec there is no status subresource;
	// without CopyStatus clients write the status with the object, if there is one.
	CopySpec, CopyStatus func(to, from T)
	// SpecChanged says that the generation has to move; a deletion moves it anyway. It may take away an operation
	// annotation that it answers with that. Without it objects have no generation.
	SpecChanged func(updated, old T) bool

	// PrepareForCreate and PrepareForUpdate run before validation, after the status and before the generation have been
	// dealt with; PrepareStatus does so for updates through the status subresource.
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

	// Fields are the selectable fields beside name and namespace; Indexed are those that watches and lists are often
	// selected by, the most frequent first.
	Fields  func(obj T) fields.Set
	Indexed []string

	// Columns are what kubectl prints after Name; Age comes last if it is not among them.
	Columns []Column[T]
}

// Column is a printed column.
type Column[T Object] struct {
	Name string
	// Wide says that it is printed with -o wide only.
	Wide bool
	// Type is string if empty.
	Type  string
	About string
	Value func(obj T) any
}
