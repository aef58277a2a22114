package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func exposureClasses() resource.Definition[*gardencore.ExposureClass] {
	return resource.Definition[*gardencore.ExposureClass]{
		Resource: gardencore.Resource("exposureclasses"), Singular: "exposureclass",
		ShortNames: []string{"expclass", "expcls"}, Versions: v1beta1,
		New:            func() *gardencore.ExposureClass { return &gardencore.ExposureClass{} },
		NewList:        func() runtime.Object { return &gardencore.ExposureClassList{} },
		Validate:       validation.ValidateExposureClass,
		ValidateUpdate: validation.ValidateExposureClassUpdate,
		Columns: []resource.Column[*gardencore.ExposureClass]{
			{Name: "Handler", Description: "What the control plane's exposure is handled by.",
				Value: func(c *gardencore.ExposureClass) any { return c.Handler }},
		},
	}
}
