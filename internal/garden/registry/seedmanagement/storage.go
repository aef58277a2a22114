// Package seedmanagement provides the storage of the API group seedmanagement.gardener.cloud, with a file for each
// resource. Storage returns the storage of all resources.
package seedmanagement

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage returns the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, gardenlets())
	resource.Add(b, managedSeeds())
	if sets := resource.Add(b, managedSeedSets()); sets != nil {
		b.Subresource("managedseedsets/scale", "v1alpha1", &scaleREST{sets})
	}
	return b.Result()
}
