package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func internalSecrets() resource.Definition[*gardencore.InternalSecret] {
	return resource.Definition[*gardencore.InternalSecret]{
		Resource: gardencore.Resource("internalsecrets"), Singular: "internalsecret", ShortNames: []string{"ins"},
		Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		New:            func() *gardencore.InternalSecret { return &gardencore.InternalSecret{} },
		NewList:        func() runtime.Object { return &gardencore.InternalSecretList{} },
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
