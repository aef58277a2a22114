// Package seedmanagement provides the storage of the API group seedmanagement.gardener.cloud.
package seedmanagement

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/seedmanagementvalidation"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage returns the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, gardenlets())
	resource.Add(b, managedSeeds())
	if sets := resource.Add(b, managedSeedSets()); sets != nil {
		b.Subresource("managedseedsets/scale", "v1alpha1", &scaleREST{sets})
	}
	return b.Result()
}

func managedSeeds() resource.Definition[*gardenseedmanagement.ManagedSeed] {
	return resource.Definition[*gardenseedmanagement.ManagedSeed]{
		Resource: gardenseedmanagement.Resource("managedseeds"), Kind: "ManagedSeed", ShortNames: []string{"ms"},
		Versions: v1alpha1, Namespaced: true,
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
				switch resource.Condition(m.Status.Conditions, gardenseedmanagement.ManagedSeedSeedRegistered) {
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
	return ptr.Deref(m.Spec.Shoot, gardenseedmanagement.Shoot{}).Name
}

func managedSeedSets() resource.Definition[*gardenseedmanagement.ManagedSeedSet] {
	return resource.Definition[*gardenseedmanagement.ManagedSeedSet]{
		Resource: gardenseedmanagement.Resource("managedseedsets"), Kind: "ManagedSeedSet", ShortNames: []string{"mss"},
		Versions: v1alpha1, Namespaced: true,
		CopySpec:             func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Status = from.Status },
		Validate:             validation.ValidateManagedSeedSet,
		ValidateUpdate:       validation.ValidateManagedSeedSetUpdate,
		ValidateStatusUpdate: validation.ValidateManagedSeedSetStatusUpdate,
		SpecChanged: func(m, old *gardenseedmanagement.ManagedSeedSet) bool {
			return !resource.Equal(old.Spec, m.Spec) || resource.ConsumeOperationAnnotation(m, v1beta1constants.GardenerOperationReconcile)
		},
		Warnings: func(m, _ *gardenseedmanagement.ManagedSeedSet) []string {
			return core.ShootTemplateWarnings(&m.Spec.ShootTemplate.Spec, field.NewPath("spec", "shootTemplate", "spec"))
		},
		Columns: []resource.Column[*gardenseedmanagement.ManagedSeedSet]{
			{Name: "Ready", Description: "Ready replicas of those wanted.", Value: func(m *gardenseedmanagement.ManagedSeedSet) any {
				return fmt.Sprintf("%d/%d", m.Status.ReadyReplicas, ptr.Deref(m.Spec.Replicas, 0))
			}},
			{Name: "Pending", Description: "The replica that is being worked on, and why.", Value: func(m *gardenseedmanagement.ManagedSeedSet) any {
				if p := m.Status.PendingReplica; p != nil {
					return fmt.Sprintf("%s:%s", p.Name, p.Reason)
				}
				return ""
			}},
		},
	}
}

func gardenlets() resource.Definition[*gardenseedmanagement.Gardenlet] {
	return resource.Definition[*gardenseedmanagement.Gardenlet]{
		Resource: gardenseedmanagement.Resource("gardenlets"), Kind: "Gardenlet", ShortNames: []string{"gl", "glet"},
		Versions: v1alpha1, Namespaced: true,
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
				return resource.OrUnknown(resource.Condition(g.Status.Conditions, gardenseedmanagement.GardenletReconciled))
			}},
		},
	}
}
