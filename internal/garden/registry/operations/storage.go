// Package operations is the storage of the API group operations.gardener.cloud, a file a resource. Storage has it all.
package operations

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, bastions(clock))
	return b.Result()
}
