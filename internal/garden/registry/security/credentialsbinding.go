package security

import (
	"context"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/securityvalidation"
)

func credentialsBindings() resource.Definition[*gardensecurity.CredentialsBinding] {
	return resource.Definition[*gardensecurity.CredentialsBinding]{
		Resource: gardensecurity.Resource("credentialsbindings"), Singular: "credentialsbinding", ShortNames: []string{"cb"},
		Versions: v1alpha1, Namespaced: true,
		New:              func() *gardensecurity.CredentialsBinding { return &gardensecurity.CredentialsBinding{} },
		NewList:          func() runtime.Object { return &gardensecurity.CredentialsBindingList{} },
		PrepareForCreate: func(_ context.Context, b *gardensecurity.CredentialsBinding) { nameIt(b) },
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
