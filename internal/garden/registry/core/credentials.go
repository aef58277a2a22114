package core

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func secretBindings() resource.Definition[*gardencore.SecretBinding] {
	return resource.Definition[*gardencore.SecretBinding]{
		Resource: gardencore.Resource("secretbindings"), Kind: "SecretBinding", ShortNames: []string{"sb"},
		Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		Validate:         validation.ValidateSecretBinding,
		ValidateUpdate:   validation.ValidateSecretBindingUpdate,
		PrepareForCreate: func(_ context.Context, binding *gardencore.SecretBinding) { resource.GenerateName(binding) },
		Warnings: func(_, _ *gardencore.SecretBinding) []string {
			return []string{"SecretBindings are deprecated: use a CredentialsBinding instead, see " + bindingMigrationDoc}
		},
		Columns: []resource.Column[*gardencore.SecretBinding]{
			{Name: "Secret", Description: "The secret with the credentials.",
				Value: func(b *gardencore.SecretBinding) any { return b.SecretRef.Namespace + "/" + b.SecretRef.Name }},
			{Name: "Provider", Description: "The provider type.", Value: func(b *gardencore.SecretBinding) any {
				return ptr.Deref(b.Provider, gardencore.SecretBindingProvider{Type: resource.None}).Type
			}},
		},
	}
}

func internalSecrets() resource.Definition[*gardencore.InternalSecret] {
	return resource.Definition[*gardencore.InternalSecret]{
		Resource: gardencore.Resource("internalsecrets"), Kind: "InternalSecret", ShortNames: []string{"ins"},
		Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		Validate:       validation.ValidateInternalSecret,
		ValidateUpdate: validation.ValidateInternalSecretUpdate,
		PrepareForUpdate: func(_ context.Context, secret, old *gardencore.InternalSecret) {
			if secret.Type == "" { // as with Secrets, an update without a type keeps the type
				secret.Type = old.Type
			}
		},
		Fields: func(s *gardencore.InternalSecret) fields.Set {
			return fields.Set{gardencore.InternalSecretType: string(s.Type)}
		},
		Indexed: []string{gardencore.InternalSecretType},
		Columns: []resource.Column[*gardencore.InternalSecret]{
			{Name: "Type", Description: "What kind of data it holds.", Value: func(s *gardencore.InternalSecret) any { return string(s.Type) }},
			{Name: "Data", Description: "How many entries it has.", Value: func(s *gardencore.InternalSecret) any { return int64(len(s.Data)) }},
		},
	}
}

func quotas() resource.Definition[*gardencore.Quota] {
	return resource.Definition[*gardencore.Quota]{
		Resource: gardencore.Resource("quotas"), Kind: "Quota", ShortNames: []string{"squota"}, Versions: v1beta1,
		Namespaced: true, AllowUnconditionalUpdate: true,
		Validate:       validation.ValidateQuota,
		ValidateUpdate: validation.ValidateQuotaUpdate,
		Columns: []resource.Column[*gardencore.Quota]{
			{Name: "Scope", Description: "What the limits are for.", Value: func(q *gardencore.Quota) any {
				return q.Spec.Scope.APIVersion + "." + q.Spec.Scope.Kind
			}},
			{Name: "Cluster Lifetime", Description: "How long clusters may live.", Value: func(q *gardencore.Quota) any {
				if q.Spec.ClusterLifetimeDays == nil {
					return "<unspecified>"
				}
				return fmt.Sprintf("%d days", *q.Spec.ClusterLifetimeDays)
			}},
		},
	}
}
