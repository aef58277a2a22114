package core

import (
	"context"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// v1beta1 is the version that all resources of the group are served in.
var v1beta1 = []string{"v1beta1"}

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, backupBuckets())
	resource.Add(b, backupEntries())
	resource.Add(b, cloudProfiles())
	resource.Add(b, namespacedCloudProfiles())
	resource.Add(b, controllerDeployments())
	resource.Add(b, controllerRegistrations())
	resource.Add(b, controllerInstallations())
	resource.Add(b, exposureClasses())
	resource.Add(b, internalSecrets())
	resource.Add(b, projects())
	resource.Add(b, quotas())
	resource.Add(b, secretBindings())
	resource.Add(b, seeds())
	resource.Add(b, shootStates())
	if shootStore := resource.Add(b, shoots()); shootStore != nil {
		b.Subresource("shoots/binding", "v1beta1", newBinding(shootStore))
		b.Subresource("shoots/adminkubeconfig", "v1beta1", resource.NewUnimplemented(shootStore,
			authenticationv1alpha1.SchemeGroupVersion.WithKind("AdminKubeconfigRequest"),
			func() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} }, "shoots/adminkubeconfig"))
		b.Subresource("shoots/viewerkubeconfig", "v1beta1", resource.NewUnimplemented(shootStore,
			authenticationv1alpha1.SchemeGroupVersion.WithKind("ViewerKubeconfigRequest"),
			func() runtime.Object { return &authenticationv1alpha1.ViewerKubeconfigRequest{} }, "shoots/viewerkubeconfig"))
	}
	return b.Result()
}

// newBinding is the subresource through which a Shoot gets its seed, or another one.
func newBinding(shootStore *resource.Store) rest.Storage {
	return resource.NewStatusStore(shootStore.Store, bindingStrategy{shootStore.UpdateStrategy})
}

// bindingStrategy takes the seed's name from an update, and nothing of the status.
type bindingStrategy struct{ rest.RESTUpdateStrategy }

func (bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	shoot, before := obj.(*gardencore.Shoot), old.(*gardencore.Shoot)
	shoot.Status = before.Status
	// A Shoot that waited to be scheduled does so no longer.
	if last := shoot.Status.LastOperation; last != nil && before.Spec.SeedName == nil && shoot.Spec.SeedName != nil &&
		last.Type == gardencore.LastOperationTypeCreate && last.State == gardencore.LastOperationStatePending {
		shoot.Status.LastOperation = nil
	}
	if !resource.SpecEquality(before.Spec, shoot.Spec) {
		shoot.Generation = before.Generation + 1
	}
}

func (bindingStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (bindingStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gardencore.GroupName + "/v1beta1"): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// ValidateUpdate is that of the object itself.
func (s bindingStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
}
