// Package core provides the storage of the API group core.gardener.cloud.
package core

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var (
	// v1beta1 is the version in which all resources of the group are served.
	v1beta1 = []string{"v1beta1"}
	// all is the category of the resources that "kubectl get all" shows.
	all = []string{"all"}
)

// Storage returns the storage of the group, by version and resource. It sets the Clock and the getters of kubeconfigs
// itself.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock, kubeconfigs shootkubeconfig.Config) (
	map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, backupBuckets())
	resource.Add(b, backupEntries())
	resource.Add(b, cloudProfiles(clock))
	resource.Add(b, namespacedCloudProfiles(clock))
	resource.Add(b, controllerDeployments())
	resource.Add(b, controllerRegistrations())
	resource.Add(b, controllerInstallations())
	resource.Add(b, exposureClasses())
	secretStore := resource.Add(b, internalSecrets())
	resource.Add(b, projects())
	resource.Add(b, quotas())
	resource.Add(b, secretBindings())
	resource.Add(b, seeds())
	resource.Add(b, shootStates())
	if shootStore := resource.Add(b, shoots(clock)); shootStore != nil {
		b.Subresource("shoots/binding", "v1beta1", newBinding(shootStore))
		kubeconfigs.Clock, kubeconfigs.Shoots, kubeconfigs.InternalSecrets = clock, shootStore, secretStore
		admin, viewer := shootkubeconfig.New(kubeconfigs)
		b.Subresource("shoots/adminkubeconfig", "v1beta1", admin)
		b.Subresource("shoots/viewerkubeconfig", "v1beta1", viewer)
	}
	return b.Result()
}
