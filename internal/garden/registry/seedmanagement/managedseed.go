package seedmanagement

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/seedmanagementvalidation"
)

func managedSeeds() resource.Definition[*gardenseedmanagement.ManagedSeed] {
	return resource.Definition[*gardenseedmanagement.ManagedSeed]{
		Resource: gardenseedmanagement.Resource("managedseeds"), Singular: "managedseed", ShortNames: []string{"ms"},
		Versions: v1alpha1, Namespaced: true,
		New:                  func() *gardenseedmanagement.ManagedSeed { return &gardenseedmanagement.ManagedSeed{} },
		NewList:              func() runtime.Object { return &gardenseedmanagement.ManagedSeedList{} },
		CopySpec:             func(to, from *gardenseedmanagement.ManagedSeed) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardenseedmanagement.ManagedSeed) { to.Status = from.Status },
		Validate:             validation.ValidateManagedSeed,
		ValidateUpdate:       validation.ValidateManagedSeedUpdate,
		ValidateStatusUpdate: validation.ValidateManagedSeedStatusUpdate,
		SpecChanged: func(m, old *gardenseedmanagement.ManagedSeed) bool {
			return !resource.Equal(old.Spec, m.Spec) || resource.ConsumeOperationAnnotation(m, v1beta1constants.GardenerOperationReconcile) ||
				resource.HasOperationAnnotation(m, v1beta1constants.GardenerOperationRenewKubeconfig)
		},
		Fields: func(m *gardenseedmanagement.ManagedSeed) fields.Set {
			return fields.Set{gardenseedmanagement.ManagedSeedShootName: shootName(m)}
		},
		Indexed: []string{gardenseedmanagement.ManagedSeedShootName},
		Columns: []resource.Column[*gardenseedmanagement.ManagedSeed]{
			{Name: "Status", Description: "Whether its gardenlet has registered the seed.", Value: func(m *gardenseedmanagement.ManagedSeed) any {
				switch condition(m.Status.Conditions, gardenseedmanagement.ManagedSeedSeedRegistered) {
				case "", gardencore.ConditionUnknown:
					return "Unknown"
				case gardencore.ConditionTrue:
					return "Registered"
				}
				return "NotRegistered"
			}},
			{Name: "Shoot", Description: "The shoot that is made a seed.",
				Value: func(m *gardenseedmanagement.ManagedSeed) any { return shootName(m) }},
		},
	}
}

func shootName(m *gardenseedmanagement.ManagedSeed) string {
	if m.Spec.Shoot == nil {
		return ""
	}
	return m.Spec.Shoot.Name
}
