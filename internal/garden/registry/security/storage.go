// Package security provides the storage of the API group security.gardener.cloud, with its resources in definitions.go.
// Storage returns the storage of all resources.
package security

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage returns the storage of the group, by version and resource. The reader reads the objects in the claims of
// tokens.
func Storage(getter generic.RESTOptionsGetter, reader plugin.Reader, issuer *Issuer) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, credentialsBindings())
	if identities := resource.Add(b, workloadIdentities()); identities != nil {
		b.Subresource("workloadidentities/token", "v1alpha1", newTokenREST(identities, reader, issuer))
	}
	return b.Result()
}
