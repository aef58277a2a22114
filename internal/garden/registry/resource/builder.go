package resource

import (
	"errors"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Builder collects the storage of an API group.
type Builder struct {
	getter   generic.RESTOptionsGetter
	versions map[string]map[string]rest.Storage
	errs     []error
}

// NewBuilder returns a Builder without storage.
func NewBuilder(getter generic.RESTOptionsGetter) *Builder {
	return &Builder{getter: getter, versions: map[string]map[string]rest.Storage{}}
}

// Add adds the storage of a resource, which all of its versions share. It returns nil if that fails; Result returns
// the error.
func Add[T Object](b *Builder, def Definition[T]) *Store {
	store, status, err := NewStores(def, b.getter)
	if err != nil {
		b.errs = append(b.errs, err)
		return nil
	}
	for _, version := range def.Versions {
		b.Subresource(def.Resource.Resource, version, store)
		if status != nil {
			b.Subresource(def.Resource.Resource+"/status", version, status)
		}
	}
	return store
}

// Subresource adds storage under a path.
func (b *Builder) Subresource(path, version string, storage rest.Storage) {
	if b.versions[version] == nil {
		b.versions[version] = map[string]rest.Storage{}
	}
	b.versions[version][path] = storage
}

// Result returns the storage by version and path, or the errors of Add.
func (b *Builder) Result() (map[string]map[string]rest.Storage, error) {
	return b.versions, errors.Join(b.errs...)
}
