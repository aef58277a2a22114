package resource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
)

// Store is the storage of a resource.
type Store struct {
	*genericregistry.Store
	shortNames, categories []string
	indexes                map[string]func(runtime.Object) []string
	recent                 recent
}

var (
	_ rest.ShortNamesProvider   = &Store{}
	_ rest.CategoriesProvider   = &Store{}
	_ rest.StandardStorage      = &Store{}
	_ rest.SingularNameProvider = &Store{}
)

// ShortNames implements rest.ShortNamesProvider.
func (s *Store) ShortNames() []string { return s.shortNames }

// Categories implements rest.CategoriesProvider.
func (s *Store) Categories() []string { return s.categories }

// NewStores returns the storage of a resource, and the storage of its status subresource if it has one.
func NewStores[T Object](def Definition[T], getter generic.RESTOptionsGetter) (*Store, *StatusStore, error) {
	if len(def.Versions) == 0 {
		return nil, nil, fmt.Errorf("%s has no versions", def.Resource)
	}
	main := newStrategy(&def)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return def.newObject("") },
		NewListFunc:               func() runtime.Object { return def.newObject("List") },
		PredicateFunc:             def.predicate,
		DefaultQualifiedResource:  def.Resource,
		SingularQualifiedResource: schema.GroupResource{Group: def.Resource.Group, Resource: strings.ToLower(def.Kind)},
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            newTableConvertor(&def),
	}
	options := &generic.StoreOptions{RESTOptions: getter, AttrFunc: def.attributes}
	options.TriggerFunc, options.Indexers = def.indexes()
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, nil, fmt.Errorf("making the storage of %s: %w", def.Resource, err)
	}
	result := &Store{Store: store, shortNames: def.ShortNames, categories: def.Categories,
		indexes: map[string]func(runtime.Object) []string{}}
	for name, values := range def.Indexes {
		result.indexes[name] = func(obj runtime.Object) []string { return values(obj.(T)) }
		store.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) { result.recent.add(obj, o.DryRun) }
		store.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) { result.recent.add(obj, o.DryRun) }
	}
	if def.CopySpec == nil {
		return result, nil, nil
	}
	return result, NewStatusStore(store, statusStrategy[T]{main}), nil
}

func (d *Definition[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not one of %s", obj, d.Resource)
	}
	set := fields.Set{"metadata.name": typed.GetName()}
	if d.Namespaced {
		set["metadata.namespace"] = typed.GetNamespace()
	}
	if d.Fields != nil {
		maps.Copy(set, d.Fields(typed))
	}
	return typed.GetLabels(), set, nil
}

func (d *Definition[T]) predicate(label labels.Selector, selector fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: selector, GetAttrs: d.attributes, IndexFields: d.Indexed}
}

// indexes returns the indexes by which the watch cache finds the watchers and the objects of a value of an indexed
// field.
func (d *Definition[T]) indexes() (storage.IndexerFuncs, *cache.Indexers) {
	indexers := cache.Indexers{}
	for name, values := range d.Indexes {
		indexers[storage.FieldIndex(name)] = func(obj any) ([]string, error) { return values(obj.(T)), nil }
	}
	if len(d.Indexed) == 0 {
		return nil, &indexers
	}
	value := func(obj any, name string) string {
		typed, ok := obj.(T)
		if !ok {
			return ""
		}
		return d.Fields(typed)[name]
	}
	// The watch cache dispatches by one field at most.
	triggers := storage.IndexerFuncs{d.Indexed[0]: func(obj runtime.Object) string { return value(obj, d.Indexed[0]) }}
	for _, name := range d.Indexed {
		indexers[storage.FieldIndex(name)] = func(obj any) ([]string, error) { return []string{value(obj, name)}, nil }
	}
	return triggers, &indexers
}

// StatusStore is the storage of a subresource that is a part of the object, such as its status: clients read the
// whole object, and updates have their own strategy.
type StatusStore struct {
	rest.Getter
	rest.ResetFieldsStrategy
	rest.TableConvertor
	store *genericregistry.Store
}

var _ rest.Patcher = &StatusStore{}

// NewStatusStore returns the storage of a subresource, which uses the storage of the object with another update
// strategy.
func NewStatusStore(store *genericregistry.Store, strategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}) *StatusStore {
	part := *store
	part.UpdateStrategy = strategy
	part.ResetFieldsStrategy = strategy
	// An update of a part deletes the object if it removes the last finalizer.
	part.AfterDelete = func(obj runtime.Object, options *metav1.DeleteOptions) {
		if store.AfterDelete != nil {
			store.AfterDelete(obj, options)
		}
	}
	return &StatusStore{&part, &part, &part, &part}
}

// UpdateStrategy returns the strategy for updates of the subresource.
func (s *StatusStore) UpdateStrategy() rest.RESTUpdateStrategy { return s.store.UpdateStrategy }

// New implements rest.Storage.
func (s *StatusStore) New() runtime.Object { return s.store.NewFunc() }

// Destroy implements rest.Storage. It does nothing: the Store of the object destroys the shared storage.
func (s *StatusStore) Destroy() {}

// Update implements rest.Updater. A subresource never creates its object.
func (s *StatusStore) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// Get reads an object from its storage.
func Get[T runtime.Object](ctx context.Context, from rest.Getter, name string) (none T, err error) {
	obj, err := from.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("%s is a %T, not a %T", name, obj, none)
	}
	return typed, nil
}

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
