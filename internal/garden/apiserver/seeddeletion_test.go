package apiserver

import (
	"context"
	"reflect"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry"
)

// datastore has one Seed. Its answer to a deletion is lost if the request is canceled meanwhile, as that of kine over gRPC.
type datastore struct {
	storage.Interface
	seed   *gardencore.Seed
	cancel func()
}

func (d *datastore) GetRESTOptions(gr schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{GroupResource: gr},
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return d, func() {}, nil
		},
		ResourcePrefix: "/" + gr.Resource,
	}, nil
}

func (d *datastore) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (d *datastore) Get(_ context.Context, key string, _ storage.GetOptions, into runtime.Object) error {
	if d.seed == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(d.seed.DeepCopy()).Elem())
	return nil
}

func (d *datastore) GuaranteedUpdate(_ context.Context, _ string, _ runtime.Object, _ bool, _ *storage.Preconditions,
	update storage.UpdateFunc, _ runtime.Object) error {
	_, _, err := update(d.seed.DeepCopy(), storage.ResponseMeta{ResourceVersion: 1})
	return err
}

func (d *datastore) Delete(ctx context.Context, _ string, _ runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc,
	_ runtime.Object, _ storage.DeleteOptions) error {
	d.seed = nil
	d.cancel()
	return ctx.Err()
}

// TestSeedDeletionIsNoticed checks that the deletion of a Seed is noticed although the client, its gardenlet, gives up while
// it removes the last finalizer.
func TestSeedDeletionIsNoticed(t *testing.T) {
	ctx, cancel := context.WithCancel(request.WithNamespace(t.Context(), ""))
	seed := &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", DeletionTimestamp: &metav1.Time{},
		Finalizers: []string{"gardener"}}}
	seed.DeletionTimestamp.Time = clock.RealClock{}.Now()
	seed.DeletionGracePeriodSeconds = new(int64)
	d := &datastore{seed: seed, cancel: cancel}
	groups, _, err := registry.New(seedDeletions{d}, registry.Config{Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	Extension{SeedDeleted: func(_ kubernetes.Interface, name string) { deleted = append(deleted, name) }}.notifyOfDeletedSeeds(groups, nil)
	released := seed.DeepCopy()
	released.Finalizers = nil
	_, _, _ = groups[0].Versions["v1beta1"]["seeds/status"].(rest.Updater).Update(ctx, "a",
		rest.DefaultUpdatedObjectInfo(released), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if d.seed != nil || len(deleted) != 1 {
		t.Errorf("the Seed is gone: %t, noticed: %v", d.seed == nil, deleted)
	}
}
