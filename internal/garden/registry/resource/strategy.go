package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// strategy is the strategy of the generic registry for creating, updating and deleting an object itself.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	def *Definition[T]
}

// statusStrategy is the strategy for updates of the status subresource.
type statusStrategy[T Object] struct{ strategy[T] }

var (
	_ rest.RESTCreateUpdateStrategy = strategy[Object]{}
	_ rest.RESTDeleteStrategy       = strategy[Object]{}
	_ rest.ResetFieldsStrategy      = strategy[Object]{}
	_ rest.ResetFieldsStrategy      = statusStrategy[Object]{}
)

func newStrategy[T Object](def *Definition[T]) strategy[T] {
	return strategy[T]{scheme.Scheme, names.SimpleNameGenerator, def}
}

func (s strategy[T]) NamespaceScoped() bool          { return s.def.Namespaced }
func (s strategy[T]) AllowCreateOnUpdate() bool      { return false }
func (s strategy[T]) AllowUnconditionalUpdate() bool { return s.def.AllowUnconditionalUpdate }

func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	created := obj.(T)
	if s.def.CopyStatus != nil {
		s.def.CopyStatus(created, s.def.newObject("").(T))
	}
	if s.def.SpecChanged != nil {
		created.SetGeneration(1)
	}
	if s.def.PrepareForCreate != nil {
		s.def.PrepareForCreate(ctx, created)
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, before := obj.(T), old.(T)
	if s.def.CopyStatus != nil {
		s.def.CopyStatus(updated, before)
	}
	if s.def.PrepareForUpdate != nil {
		s.def.PrepareForUpdate(ctx, updated, before)
	}
	if s.def.SpecChanged == nil {
		return
	}
	changed := s.def.SpecChanged(updated, before)
	deleted := before.GetDeletionTimestamp() == nil && updated.GetDeletionTimestamp() != nil
	if changed || deleted {
		updated.SetGeneration(before.GetGeneration() + 1)
	}
}

func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	if s.def.Validate == nil {
		return nil
	}
	return s.def.Validate(obj.(T))
}

func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.def.ValidateUpdate == nil {
		return nil
	}
	return s.def.ValidateUpdate(obj.(T), old.(T))
}

func (s strategy[T]) Canonicalize(obj runtime.Object) {
	if s.def.Canonicalize != nil {
		s.def.Canonicalize(obj.(T))
	}
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.def.Warnings == nil {
		return nil
	}
	var none T
	return s.def.Warnings(obj.(T), none)
}

func (s strategy[T]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	if s.def.Warnings == nil {
		return nil
	}
	return s.def.Warnings(obj.(T), old.(T))
}

// GetResetFields returns the fields that a server-side apply of the object cannot own.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.def.CopyStatus == nil {
		return nil
	}
	return s.def.resetFields("status")
}

func (s statusStrategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, before := obj.(T), old.(T)
	s.def.CopySpec(updated, before)
	if s.def.PrepareStatus != nil {
		s.def.PrepareStatus(ctx, updated, before)
	}
}

func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.def.ValidateStatusUpdate == nil {
		return nil
	}
	return s.def.ValidateStatusUpdate(obj.(T), old.(T))
}

func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.def.resetFields("spec")
}

func (d *Definition[T]) resetFields(name string) map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, version := range d.Versions {
		reset[fieldpath.APIVersion(d.Resource.Group+"/"+version)] = fieldpath.NewSet(fieldpath.MakePathOrDie(name))
	}
	return reset
}
