package core

import (
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func controllerRegistrations() resource.Definition[*gardencore.ControllerRegistration] {
	return resource.Definition[*gardencore.ControllerRegistration]{
		Resource: gardencore.Resource("controllerregistrations"), Singular: "controllerregistration",
		ShortNames: []string{"ctrlreg"}, Categories: all, Versions: v1beta1,
		New:            func() *gardencore.ControllerRegistration { return &gardencore.ControllerRegistration{} },
		NewList:        func() runtime.Object { return &gardencore.ControllerRegistrationList{} },
		Validate:       validation.ValidateControllerRegistration,
		ValidateUpdate: validation.ValidateControllerRegistrationUpdate,
		SpecChanged:    func(r, old *gardencore.ControllerRegistration) bool { return !resource.Equal(old.Spec, r.Spec) },
		Columns: []resource.Column[*gardencore.ControllerRegistration]{
			{Name: "Resources", Description: "The extension resources that the controller is for.",
				Value: func(r *gardencore.ControllerRegistration) any {
					var kinds []string
					for _, res := range r.Spec.Resources {
						kinds = append(kinds, res.Kind+"/"+res.Type)
					}
					return strings.Join(kinds, ", ")
				}},
		},
	}
}
