// Package operations is the storage of the API group operations.gardener.cloud, a file a resource. Storage has it all.
package operations

import (
	"cmp"
	"time"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// Storage is the storage of the group, by version and resource. A time to live of 0 is DefaultTimeToLive.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock, timeToLive time.Duration) (
	map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, bastions(clock, cmp.Or(timeToLive, DefaultTimeToLive)))
	return b.Result()
}
