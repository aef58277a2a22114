// Package seedmanagement is the storage of the API group seedmanagement.gardener.cloud.
package seedmanagement

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, gardenlets())
	resource.Add(b, managedSeeds())
	if sets := resource.Add(b, managedSeedSets()); sets != nil {
		b.Subresource("managedseedsets/scale", "v1alpha1", &scaleREST{sets})
	}
	return b.Result()
}

func gardenlets() resource.Definition[*gardenseedmanagement.Gardenlet] {
	return resource.Definition[*gardenseedmanagement.Gardenlet]{
		Resource: gardenseedmanagement.Resource("gardenlets"), Singular: "gardenlet", ShortNames: []string{"gl", "glet"}, Versions: v1alpha1, Namespaced: true,
		New:        func() *gardenseedmanagement.Gardenlet { return &gardenseedmanagement.Gardenlet{} },
		NewList:    func() runtime.Object { return &gardenseedmanagement.GardenletList{} },
		CopySpec:   func(to, from *gardenseedmanagement.Gardenlet) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardenseedmanagement.Gardenlet) { to.Status = from.Status },
		SpecChanged: func(g, old *gardenseedmanagement.Gardenlet) bool {
			return !resource.SpecEquality(old.Spec, g.Spec) ||
				resource.TakeOperation(g, v1beta1constants.GardenerOperationReconcile) ||
				resource.TakeOperation(g, v1beta1constants.OperationForceRedeploy) ||
				!resource.HasOperation(old, v1beta1constants.GardenerOperationRenewKubeconfig) && resource.HasOperation(g, v1beta1constants.GardenerOperationRenewKubeconfig)
		},
		Columns: []resource.Column[*gardenseedmanagement.Gardenlet]{
			{Name: "Status", About: "Condition GardenletReconciled.", Value: func(g *gardenseedmanagement.Gardenlet) any {
				return condition(g.Status.Conditions, "GardenletReconciled")
			}},
		},
	}
}

func managedSeeds() resource.Definition[*gardenseedmanagement.ManagedSeed] {
	return resource.Definition[*gardenseedmanagement.ManagedSeed]{
		Resource: gardenseedmanagement.Resource("managedseeds"), Singular: "managedseed", ShortNames: []string{"ms"}, Versions: v1alpha1, Namespaced: true,
		New:        func() *gardenseedmanagement.ManagedSeed { return &gardenseedmanagement.ManagedSeed{} },
		NewList:    func() runtime.Object { return &gardenseedmanagement.ManagedSeedList{} },
		CopySpec:   func(to, from *gardenseedmanagement.ManagedSeed) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardenseedmanagement.ManagedSeed) { to.Status = from.Status },
		SpecChanged: func(m, old *gardenseedmanagement.ManagedSeed) bool {
			return !resource.SpecEquality(old.Spec, m.Spec) ||
				resource.TakeOperation(m, v1beta1constants.GardenerOperationReconcile) ||
				!resource.HasOperation(old, v1beta1constants.GardenerOperationRenewKubeconfig) && resource.HasOperation(m, v1beta1constants.GardenerOperationRenewKubeconfig)
		},
		Fields: func(m *gardenseedmanagement.ManagedSeed) fields.Set {
			if m.Spec.Shoot == nil {
				return fields.Set{gardenseedmanagement.ManagedSeedShootName: ""}
			}
			return fields.Set{gardenseedmanagement.ManagedSeedShootName: m.Spec.Shoot.Name}
		},
		Indexed: []string{gardenseedmanagement.ManagedSeedShootName},
		Columns: []resource.Column[*gardenseedmanagement.ManagedSeed]{
			{Name: "Status", About: "Condition SeedRegistered.", Value: func(m *gardenseedmanagement.ManagedSeed) any {
				return condition(m.Status.Conditions, gardenseedmanagement.ManagedSeedSeedRegistered)
			}},
			{Name: "Shoot", About: "The shoot that is made a seed.", Value: func(m *gardenseedmanagement.ManagedSeed) any {
				if m.Spec.Shoot == nil {
					return resource.None
				}
				return m.Spec.Shoot.Name
			}},
		},
	}
}

func managedSeedSets() resource.Definition[*gardenseedmanagement.ManagedSeedSet] {
	return resource.Definition[*gardenseedmanagement.ManagedSeedSet]{
		Resource: gardenseedmanagement.Resource("managedseedsets"), Singular: "managedseedset", ShortNames: []string{"mss"}, Versions: v1alpha1, Namespaced: true,
		New:        func() *gardenseedmanagement.ManagedSeedSet { return &gardenseedmanagement.ManagedSeedSet{} },
		NewList:    func() runtime.Object { return &gardenseedmanagement.ManagedSeedSetList{} },
		CopySpec:   func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Status = from.Status },
		SpecChanged: func(m, old *gardenseedmanagement.ManagedSeedSet) bool {
			return !resource.SpecEquality(old.Spec, m.Spec)
		},
		Columns: []resource.Column[*gardenseedmanagement.ManagedSeedSet]{
			{Name: "Ready", About: "Ready of wanted replicas.", Value: func(m *gardenseedmanagement.ManagedSeedSet) any {
				return fmt.Sprintf("%d/%d", m.Status.ReadyReplicas, m.Status.Replicas)
			}},
		},
	}
}

func condition(conditions []gardencore.Condition, kind gardencore.ConditionType) any {
	for _, c := range conditions {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return resource.Unknown
}
