package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// newBinding returns the storage of the subresource binding, which assigns a Shoot to a seed or moves it to another
// one.
func newBinding(shootStore *resource.Store) rest.Storage {
	return resource.NewStatusStore(shootStore.Store, bindingStrategy{shootStore.UpdateStrategy})
}

// bindingStrategy accepts changes of the spec. It validates like the strategy of the Shoot itself; the admission
// plugins ensure that nothing else in the spec changes together with the seed.
type bindingStrategy struct{ rest.RESTUpdateStrategy }

func (bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	shoot, before := obj.(*gardencore.Shoot), old.(*gardencore.Shoot)
	shoot.Status = before.Status
	// The pending Create operation says that the Shoot waits to be scheduled.
	if last := shoot.Status.LastOperation; last != nil && before.Spec.SeedName == nil && shoot.Spec.SeedName != nil &&
		last.Type == gardencore.LastOperationTypeCreate && last.State == gardencore.LastOperationStatePending {
		shoot.Status.LastOperation = nil
	}
	if !resource.Equal(before.Spec, shoot.Spec) {
		shoot.Generation = before.Generation + 1
	}
	syncDNSCredentials(shoot)
}

func (bindingStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (bindingStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gardencore.GroupName + "/v1beta1"): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}
