// Package plugintest helps in tests of admission plugins.
package plugintest

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// Reader is a plugin.Reader that returns the given Objects. Field selectors are matched against the result of Fields.
type Reader struct {
	Objects map[schema.GroupResource][]runtime.Object
	// Fields returns the selectable fields of an object; nil means that every selector matches.
	Fields func(runtime.Object) fields.Set
}

// Get implements plugin.Reader.
func (r Reader) Get(_ context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	for _, obj := range r.Objects[resource] {
		if m, err := meta.Accessor(obj); err == nil && m.GetNamespace() == namespace && m.GetName() == name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(resource, name)
}

// List implements plugin.Reader.
func (r Reader) List(_ context.Context, resource schema.GroupResource, namespace string, selector fields.Selector) (
	[]runtime.Object, error) {
	var found []runtime.Object
	for _, obj := range r.Objects[resource] {
		m, err := meta.Accessor(obj)
		if err != nil || namespace != "" && m.GetNamespace() != namespace {
			continue
		}
		if selector != nil && r.Fields != nil && !selector.Matches(r.Fields(obj)) {
			continue
		}
		found = append(found, obj)
	}
	return found, nil
}

// ByIndex implements plugin.Reader, for the indexes of Shoots.
func (r Reader) ByIndex(_ context.Context, resource schema.GroupResource, index, value string) (found []runtime.Object,
	_ error) {
	for _, obj := range r.Objects[resource] {
		shoot, ok := obj.(*gardencore.Shoot)
		if !ok || shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
			continue
		}
		values := []string{*shoot.Spec.DNS.Domain}
		if index == plugin.IndexParentDomain {
			values = plugin.ParentDomains(values[0])
		}
		if slices.Contains(values, value) {
			found = append(found, obj)
		}
	}
	return found, nil
}
