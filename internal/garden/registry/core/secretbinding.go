package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func secretBindings() resource.Definition[*gardencore.SecretBinding] {
	return resource.Definition[*gardencore.SecretBinding]{
		Resource: gardencore.Resource("secretbindings"), Singular: "secretbinding", ShortNames: []string{"sb"},
		Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		New:            func() *gardencore.SecretBinding { return &gardencore.SecretBinding{} },
		NewList:        func() runtime.Object { return &gardencore.SecretBindingList{} },
		Validate:       validation.ValidateSecretBinding,
		ValidateUpdate: validation.ValidateSecretBindingUpdate,
		// As in Gardener, a name is generated even if generateName is empty.
		PrepareForCreate: func(_ context.Context, binding *gardencore.SecretBinding) {
			if binding.Name == "" {
				binding.Name = names.SimpleNameGenerator.GenerateName(binding.GenerateName)
			}
		},
		Warnings: func(_, _ *gardencore.SecretBinding) []string {
			return []string{"SecretBindings are deprecated: use a CredentialsBinding instead, see " + bindingMigrationDoc}
		},
		Columns: []resource.Column[*gardencore.SecretBinding]{
			{Name: "Secret", Description: "The secret with the credentials.",
				Value: func(b *gardencore.SecretBinding) any { return b.SecretRef.Namespace + "/" + b.SecretRef.Name }},
			{Name: "Provider", Description: "The provider type.", Value: func(b *gardencore.SecretBinding) any {
				if b.Provider == nil {
					return resource.None
				}
				return b.Provider.Type
			}},
		},
	}
}
