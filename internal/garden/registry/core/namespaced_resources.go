package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/core"
)

func namespacedCloudProfiles() resource.Definition[*gardencore.NamespacedCloudProfile] {
	return resource.Definition[*gardencore.NamespacedCloudProfile]{
		Resource: gardencore.Resource("namespacedcloudprofiles"), Singular: "namespacedcloudprofile", ShortNames: []string{"nsprofile", "nscpfl"}, Versions: v1beta1, Namespaced: true, Unconditional: true,
		New:                  func() *gardencore.NamespacedCloudProfile { return &gardencore.NamespacedCloudProfile{} },
		NewList:              func() runtime.Object { return &gardencore.NamespacedCloudProfileList{} },
		Validate:             validation.ValidateNamespacedCloudProfile,
		ValidateUpdate:       validation.ValidateNamespacedCloudProfileUpdate,
		ValidateStatusUpdate: validation.ValidateNamespacedCloudProfileStatusUpdate,
		CopySpec:             func(to, from *gardencore.NamespacedCloudProfile) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.NamespacedCloudProfile) { to.Status = from.Status },
		SpecChanged:          func(p, old *gardencore.NamespacedCloudProfile) bool { return !resource.SpecEquality(old.Spec, p.Spec) },
		Fields: func(p *gardencore.NamespacedCloudProfile) fields.Set {
			return fields.Set{gardencore.NamespacedCloudProfileParentRefName: p.Spec.Parent.Name}
		},
		Indexed: []string{gardencore.NamespacedCloudProfileParentRefName},
		Columns: []resource.Column[*gardencore.NamespacedCloudProfile]{
			{Name: "Parent", About: "The CloudProfile that it is based on.", Value: func(p *gardencore.NamespacedCloudProfile) any { return p.Spec.Parent.Name }},
			{Name: "Type", About: "The provider type.", Value: func(p *gardencore.NamespacedCloudProfile) any { return p.Status.CloudProfileSpec.Type }},
		},
	}
}

func internalSecrets() resource.Definition[*gardencore.InternalSecret] {
	return resource.Definition[*gardencore.InternalSecret]{
		Resource: gardencore.Resource("internalsecrets"), Singular: "internalsecret", ShortNames: []string{"ins"}, Versions: v1beta1, Namespaced: true, Unconditional: true,
		New:            func() *gardencore.InternalSecret { return &gardencore.InternalSecret{} },
		NewList:        func() runtime.Object { return &gardencore.InternalSecretList{} },
		Validate:       validation.ValidateInternalSecret,
		ValidateUpdate: validation.ValidateInternalSecretUpdate,
		PrepareForUpdate: func(_ context.Context, secret, old *gardencore.InternalSecret) {
			if secret.Type == "" { // as with Secrets, an update that says nothing of the type keeps it
				secret.Type = old.Type
			}
		},
		Fields: func(s *gardencore.InternalSecret) fields.Set {
			return fields.Set{gardencore.InternalSecretType: string(s.Type)}
		},
		Columns: []resource.Column[*gardencore.InternalSecret]{
			{Name: "Type", About: "What kind of data it holds.", Value: func(s *gardencore.InternalSecret) any { return string(s.Type) }},
			{Name: "Data", Type: "integer", About: "How many entries it has.", Value: func(s *gardencore.InternalSecret) any { return int64(len(s.Data)) }},
		},
	}
}

func quotas() resource.Definition[*gardencore.Quota] {
	return resource.Definition[*gardencore.Quota]{
		Resource: gardencore.Resource("quotas"), Singular: "quota", ShortNames: []string{"squota"}, Versions: v1beta1, Namespaced: true, Unconditional: true,
		New:            func() *gardencore.Quota { return &gardencore.Quota{} },
		NewList:        func() runtime.Object { return &gardencore.QuotaList{} },
		Validate:       validation.ValidateQuota,
		ValidateUpdate: validation.ValidateQuotaUpdate,
		Columns: []resource.Column[*gardencore.Quota]{
			{Name: "Scope", About: "What the limits are for.", Value: func(q *gardencore.Quota) any { return q.Spec.Scope.Kind }},
			{Name: "Lifetime", About: "Days until clusters are deleted.", Value: func(q *gardencore.Quota) any {
				if q.Spec.ClusterLifetimeDays == nil {
					return resource.None
				}
				return int64(*q.Spec.ClusterLifetimeDays)
			}},
		},
	}
}

func secretBindings() resource.Definition[*gardencore.SecretBinding] {
	return resource.Definition[*gardencore.SecretBinding]{
		Resource: gardencore.Resource("secretbindings"), Singular: "secretbinding", ShortNames: []string{"sb"}, Versions: v1beta1, Namespaced: true, Unconditional: true,
		New:            func() *gardencore.SecretBinding { return &gardencore.SecretBinding{} },
		NewList:        func() runtime.Object { return &gardencore.SecretBindingList{} },
		Validate:       validation.ValidateSecretBinding,
		ValidateUpdate: validation.ValidateSecretBindingUpdate,
		Columns: []resource.Column[*gardencore.SecretBinding]{
			{Name: "Provider", About: "The provider type.", Value: func(b *gardencore.SecretBinding) any {
				if b.Provider == nil {
					return resource.None
				}
				return b.Provider.Type
			}},
			{Name: "Secret", About: "The secret with the credentials.", Value: func(b *gardencore.SecretBinding) any { return b.SecretRef.Namespace + "/" + b.SecretRef.Name }},
		},
	}
}

func shootStates() resource.Definition[*gardencore.ShootState] {
	return resource.Definition[*gardencore.ShootState]{
		Resource: gardencore.Resource("shootstates"), Singular: "shootstate", Versions: v1beta1, Namespaced: true, Unconditional: true,
		New:            func() *gardencore.ShootState { return &gardencore.ShootState{} },
		NewList:        func() runtime.Object { return &gardencore.ShootStateList{} },
		Validate:       validation.ValidateShootState,
		ValidateUpdate: validation.ValidateShootStateUpdate,
		SpecChanged:    func(s, old *gardencore.ShootState) bool { return !resource.SpecEquality(old.Spec, s.Spec) },
	}
}
