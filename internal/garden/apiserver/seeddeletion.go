package apiserver

import (
	"context"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/garden/registry"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// deletionTimeout limits the deletion of a Seed in the datastore.
const deletionTimeout = 30 * time.Second

// seedDeletions makes the deletion of a Seed in the datastore independent of the request: if a client gives up while the
// datastore deletes a Seed, the Seed would be gone, but AfterDelete would not be called. The client may be the Seed's
// gardenlet, which removes the last finalizer.
type seedDeletions struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g seedDeletions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(gr, example)
	if err != nil || gr != gardencore.Resource("seeds") {
		return options, err
	}
	inner := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (
		storage.Interface, factory.DestroyFunc, error) {
		seeds, destroy, err := inner(config, prefix, key, newObject, newList, attributes, triggers, indexers)
		return seedStorage{seeds}, destroy, err
	}
	return options, nil
}

type seedStorage struct{ storage.Interface }

// Delete implements storage.Interface.
func (s seedStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	return s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options)
}

// notifyOfDeletedSeeds calls SeedDeleted after the deletion of a Seed.
func (e Extension) notifyOfDeletedSeeds(groups []registry.Group, kube kubernetes.Interface) {
	for _, group := range groups {
		for _, storage := range group.Versions {
			if seeds, ok := storage["seeds"].(*resource.Store); ok && e.SeedDeleted != nil {
				seeds.AfterDelete = func(seed runtime.Object, options *metav1.DeleteOptions) {
					if name, err := meta.NewAccessor().Name(seed); err == nil && !dryrun.IsDryRun(options.DryRun) {
						e.SeedDeleted(kube, name)
					}
				}
			}
		}
	}
}
