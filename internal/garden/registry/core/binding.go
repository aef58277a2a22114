package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// newBinding is the subresource through which a Shoot gets its seed, or another one.
func newBinding(shootStore *resource.Store) rest.Storage {
	return resource.NewStatusStore(shootStore.Store, bindingStrategy{shootStore.UpdateStrategy})
}

// bindingStrategy lets the seed's name through. It validates as for the Shoot itself; the admission plugins see to it that
// nothing else of the spec is changed with the seed.
type bindingStrategy struct{ rest.RESTUpdateStrategy }

func (bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	shoot, before := obj.(*gardencore.Shoot), old.(*gardencore.Shoot)
	shoot.Status = before.Status
	// A Shoot that waited to be scheduled does so no longer.
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
