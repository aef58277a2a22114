// Package operations provides the storage of the API group operations.gardener.cloud, with a file for each resource.
// Storage returns the storage of all resources.
package operations

import (
	"cmp"
	"time"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// Storage returns the storage of the group, by version and resource. A timeToLive of 0 means DefaultTimeToLive.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock, timeToLive time.Duration) (
	map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, bastions(clock, cmp.Or(timeToLive, DefaultTimeToLive)))
	return b.Result()
}
