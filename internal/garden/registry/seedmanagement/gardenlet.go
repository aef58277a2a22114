package seedmanagement

import (
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/seedmanagementvalidation"
)

func gardenlets() resource.Definition[*gardenseedmanagement.Gardenlet] {
	return resource.Definition[*gardenseedmanagement.Gardenlet]{
		Resource: gardenseedmanagement.Resource("gardenlets"), Singular: "gardenlet", ShortNames: []string{"gl", "glet"},
		Versions: v1alpha1, Namespaced: true,
		New:      func() *gardenseedmanagement.Gardenlet { return &gardenseedmanagement.Gardenlet{} },
		NewList:  func() runtime.Object { return &gardenseedmanagement.GardenletList{} },
		CopySpec: func(to, from *gardenseedmanagement.Gardenlet) { to.Spec = from.Spec },
		// There is no CopyStatus: as in Gardener, the status can also be written with the object.
		Validate:             validation.ValidateGardenlet,
		ValidateUpdate:       validation.ValidateGardenletUpdate,
		ValidateStatusUpdate: validation.ValidateGardenletStatusUpdate,
		SpecChanged: func(g, old *gardenseedmanagement.Gardenlet) bool {
			return !resource.Equal(old.Spec, g.Spec) || resource.ConsumeOperationAnnotation(g, v1beta1constants.GardenerOperationReconcile) ||
				resource.HasOperationAnnotation(g, v1beta1constants.GardenerOperationRenewKubeconfig, v1beta1constants.OperationForceRedeploy)
		},
		Columns: []resource.Column[*gardenseedmanagement.Gardenlet]{
			{Name: "OCI Repository", Description: "Where the gardenlet's Helm chart comes from.",
				Value: func(g *gardenseedmanagement.Gardenlet) any {
					return g.Spec.Deployment.Helm.OCIRepository.GetURL()
				}},
			{Name: "Reconciled", Description: "Condition GardenletReconciled.", Value: func(g *gardenseedmanagement.Gardenlet) any {
				if status := condition(g.Status.Conditions, gardenseedmanagement.GardenletReconciled); status != "" {
					return string(status)
				}
				return resource.Unknown
			}},
		},
	}
}
