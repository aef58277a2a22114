// Package security provides the storage of the API group security.gardener.cloud.
package security

import (
	"context"
	"strings"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/securityvalidation"
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

func credentialsBindings() resource.Definition[*gardensecurity.CredentialsBinding] {
	return resource.Definition[*gardensecurity.CredentialsBinding]{
		Resource: gardensecurity.Resource("credentialsbindings"), Kind: "CredentialsBinding", ShortNames: []string{"cb"},
		Versions: v1alpha1, Namespaced: true,
		PrepareForCreate: func(_ context.Context, b *gardensecurity.CredentialsBinding) { resource.GenerateName(b) },
		Validate:         validation.ValidateCredentialsBinding,
		ValidateUpdate:   validation.ValidateCredentialsBindingUpdate,
		Columns: []resource.Column[*gardensecurity.CredentialsBinding]{
			{Name: "Provider", Description: "The provider type.", Value: func(b *gardensecurity.CredentialsBinding) any { return b.Provider.Type }},
			{Name: "APIVersion", Description: "The API version of the credentials.",
				Value: func(b *gardensecurity.CredentialsBinding) any { return b.CredentialsRef.APIVersion }},
			{Name: "Kind", Description: "The kind of the credentials: Secret, InternalSecret or WorkloadIdentity.",
				Value: func(b *gardensecurity.CredentialsBinding) any { return b.CredentialsRef.Kind }},
			{Name: "Name", Description: "The namespace and the name of the credentials.", Value: func(b *gardensecurity.CredentialsBinding) any {
				return b.CredentialsRef.Namespace + "/" + b.CredentialsRef.Name
			}},
		},
	}
}

func workloadIdentities() resource.Definition[*gardensecurity.WorkloadIdentity] {
	return resource.Definition[*gardensecurity.WorkloadIdentity]{
		Resource: gardensecurity.Resource("workloadidentities"), Kind: "WorkloadIdentity", ShortNames: []string{"wi"},
		Versions: v1alpha1, Namespaced: true,
		// There is no status subresource: the subject is set once, and the validation refuses to change it.
		PrepareForCreate: func(_ context.Context, w *gardensecurity.WorkloadIdentity) {
			resource.GenerateName(w)
			if w.UID == "" {
				w.UID = uuid.NewUUID()
			}
			if w.Status.Sub == "" {
				w.Status.Sub = validation.SubClaim(w)
			}
		},
		Validate:       validation.ValidateWorkloadIdentity,
		ValidateUpdate: validation.ValidateWorkloadIdentityUpdate,
		Columns: []resource.Column[*gardensecurity.WorkloadIdentity]{
			{Name: "Sub", Description: "The subject of its tokens.", Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Status.Sub }},
			{Name: "Type", Description: "The system that it is for.",
				Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Spec.TargetSystem.Type }},
			{Name: "Audiences", Wide: true, Description: "The audiences of its tokens.", Value: func(w *gardensecurity.WorkloadIdentity) any {
				return strings.Join(w.Spec.Audiences, ",")
			}},
		},
	}
}
