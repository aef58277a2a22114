package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func shootStates() resource.Definition[*gardencore.ShootState] {
	return resource.Definition[*gardencore.ShootState]{
		Resource: gardencore.Resource("shootstates"), Singular: "shootstate", Categories: all, Versions: v1beta1, Namespaced: true,
		New:            func() *gardencore.ShootState { return &gardencore.ShootState{} },
		NewList:        func() runtime.Object { return &gardencore.ShootStateList{} },
		Validate:       validation.ValidateShootState,
		ValidateUpdate: validation.ValidateShootStateUpdate,
		SpecChanged:    func(s, old *gardencore.ShootState) bool { return !resource.Equal(old.Spec, s.Spec) },
		Columns: []resource.Column[*gardencore.ShootState]{
			{Name: "Gardener Data", Description: "How many entries Gardener's own state has.",
				Value: func(s *gardencore.ShootState) any { return int64(len(s.Spec.Gardener)) }},
			{Name: "Extension States", Description: "How many extension resources have state.",
				Value: func(s *gardencore.ShootState) any { return int64(len(s.Spec.Extensions)) }},
		},
	}
}
