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
	// Versions are those in which status and metadata paths are reset for server-side apply.
	Versions []string
	// Namespaced says where its objects live.
	Namespaced bool
	// Unconditional says that an update need not name a resource version.
	Unconditional bool

	New     func() T
	NewList func() runtime.Object

	// CopySpec and CopyStatus copy a part of an object to another. Without CopyStatus there is no status subresource.
	CopySpec, CopyStatus func(to, from T)
	// SpecChanged says that the generation has to move. It may take an operation annotation away that it answers with
	// that. Without it the generation is left alone.
	SpecChanged func(updated, old T) bool

	// PrepareForCreate and PrepareForUpdate run before validation, after the status and before the generation have been
	// dealt with; PrepareStatus does for status updates.
	PrepareForCreate func(ctx context.Context, obj T)
	PrepareForUpdate func(ctx context.Context, updated, old T)
	PrepareStatus    func(ctx context.Context, updated, old T)
	// Canonicalize runs after validation.
	Canonicalize func(obj T)

	Validate             func(obj T) field.ErrorList
	ValidateUpdate       func(updated, old T) field.ErrorList
	ValidateStatusUpdate func(updated, old T) field.ErrorList
	// Warnings are for the client that creates (old is the zero value) or updates an object.
	Warnings func(ctx context.Context, updated, old T) []string

	// Fields are the selectable fields beside name and namespace; Indexed are those that watches and lists are often
	// selected by.
	Fields  func(obj T) fields.Set
	Indexed []string

	// Columns are what kubectl prints between Name and Age.
	Columns []Column[T]
}

// Column is a printed column.
type Column[T Object] struct {
	Name string
	// Wide says that it is printed with -o wide only.
	Wide bool
	// Type is string if empty; date for a time that is printed as an age.
	Type  string
	About string
	Value func(obj T) any
}
