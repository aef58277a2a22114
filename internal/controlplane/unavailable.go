package controlplane

import (
	"context"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	registry "k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

// CheckDatastore returns an error if the datastore does not answer.
func (s *Server) CheckDatastore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if s.connection != nil {
		return s.connection.check(ctx, s.cfg.Prefix)
	}
	client, err := s.datastore.NewClient(ctx, probeTimeout)
	if err != nil {
		return datastore.ErrNoAnswer
	}
	defer client.Close() //nolint:errcheck // nothing of it is needed any more
	if _, err := client.Get(ctx, path.Join("/", s.cfg.Prefix, "health")); err != nil {
		return datastore.ErrNoAnswer
	}
	return nil
}

// availableOptions makes the storage of resources answer 503 while the datastore does not answer.
type availableOptions struct{ registry.RESTOptionsGetter }

// GetRESTOptions returns the options of a resource.
func (o availableOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (
	registry.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, resourcePrefix string,
		keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		attributes storage.AttrFunc, triggers storage.IndexerFuncs,
		indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		store, closeStore, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, attributes, triggers,
			indexers)
		return available{store}, closeStore, err
	}
	return options, nil
}

// available is a storage whose errors are 503 if the datastore does not answer. Kubernetes answers 500, with the error
// of the datastore, which has its address.
type available struct{ storage.Interface }

func unavailable(err error) error {
	if message, is := datastore.Unavailable(err); is && err != nil {
		return apierrors.NewServiceUnavailable(message)
	}
	return err
}

func (a available) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return unavailable(a.Interface.Create(ctx, key, obj, out, ttl))
}

func (a available) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	return unavailable(a.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts))
}

func (a available) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	watched, err := a.Interface.Watch(ctx, key, opts)
	return watched, unavailable(err)
}

func (a available) Get(ctx context.Context, key string, opts storage.GetOptions, into runtime.Object) error {
	return unavailable(a.Interface.Get(ctx, key, opts, into))
}

func (a available) GetList(ctx context.Context, key string, opts storage.ListOptions, into runtime.Object) error {
	return unavailable(a.Interface.GetList(ctx, key, opts, into))
}

func (a available) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	return unavailable(a.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, cached))
}

func (a available) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	version, err := a.Interface.GetCurrentResourceVersion(ctx)
	return version, unavailable(err)
}
