package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func controllerDeployments() resource.Definition[*gardencore.ControllerDeployment] {
	return resource.Definition[*gardencore.ControllerDeployment]{
		Resource: gardencore.Resource("controllerdeployments"), Singular: "controllerdeployment",
		ShortNames: []string{"ctrldeploy"}, Categories: all,
		Versions:       []string{"v1", "v1beta1"},
		New:            func() *gardencore.ControllerDeployment { return &gardencore.ControllerDeployment{} },
		NewList:        func() runtime.Object { return &gardencore.ControllerDeploymentList{} },
		Validate:       validation.ValidateControllerDeployment,
		ValidateUpdate: validation.ValidateControllerDeploymentUpdate,
		// A ControllerDeployment has no spec. A change of injectGardenKubeconfig does not increase the generation.
		SpecChanged: func(d, old *gardencore.ControllerDeployment) bool {
			return d.Type != old.Type || !resource.Equal(d.ProviderConfig, old.ProviderConfig) ||
				!resource.Equal(d.Helm, old.Helm) || !resource.Equal(d.Resources, old.Resources)
		},
	}
}
