// Package security is the storage of the API group security.gardener.cloud, a file a resource. Storage has it all.
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

// Storage is the storage of the group, by version and resource. The reader is for what tokens tell of.
func Storage(getter generic.RESTOptionsGetter, reader plugin.Reader, issuer *Issuer) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, credentialsBindings())
	if identities := resource.Add(b, workloadIdentities()); identities != nil {
		b.Subresource("workloadidentities/token", "v1alpha1", newTokenREST(identities, reader, issuer))
	}
	return b.Result()
}

// nameIt names an object that comes without any name, as Gardener does for the objects of this group.
func nameIt(obj metav1.Object) {
	if obj.GetName() == "" {
		obj.SetName(names.SimpleNameGenerator.GenerateName(obj.GetGenerateName()))
	}
}
