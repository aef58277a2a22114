// Package security is the storage of the API group security.gardener.cloud, a file a resource. Storage has it all.
package security

import (
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, credentialsBindings())
	if identities := resource.Add(b, workloadIdentities()); identities != nil {
		b.Subresource("workloadidentities/token", "v1alpha1", resource.NewUnimplemented(identities,
			securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest"),
			func() runtime.Object { return &gardensecurity.TokenRequest{} }, "workloadidentities/token"))
	}
	return b.Result()
}
