// Package security provides the storage of the API group security.gardener.cloud, with a file for each resource.
// Storage returns the storage of all resources.
package security

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

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

// nameIt generates a name for an object without one, as Gardener does for the objects of this group.
func nameIt(obj metav1.Object) {
	if obj.GetName() == "" {
		obj.SetName(names.SimpleNameGenerator.GenerateName(obj.GetGenerateName()))
	}
}
