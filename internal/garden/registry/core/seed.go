package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/core"
)

func seeds() resource.Definition[*gardencore.Seed] {
	return resource.Definition[*gardencore.Seed]{
		Resource: gardencore.Resource("seeds"), Singular: "seed", Versions: v1beta1, Unconditional: true,
		New:                  func() *gardencore.Seed { return &gardencore.Seed{} },
		NewList:              func() runtime.Object { return &gardencore.SeedList{} },
		Validate:             validation.ValidateSeed,
		ValidateUpdate:       validation.ValidateSeedUpdate,
		ValidateStatusUpdate: validation.ValidateSeedStatusUpdate,
		CopySpec:             func(to, from *gardencore.Seed) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.Seed) { to.Status = from.Status },
		SpecChanged: func(seed, old *gardencore.Seed) bool {
			if !resource.SpecEquality(old.Spec, seed.Spec) {
				return true
			}
			if old.Annotations[v1beta1constants.GardenerOperation] == seed.Annotations[v1beta1constants.GardenerOperation] {
				return false
			}
			return resource.TakeOperation(seed, v1beta1constants.GardenerOperationReconcile) ||
				resource.HasOperation(seed, v1beta1constants.SeedOperationRenewGardenAccessSecrets) ||
				resource.HasOperation(seed, v1beta1constants.SeedOperationRenewWorkloadIdentityTokens) ||
				resource.HasOperation(seed, v1beta1constants.GardenerOperationRenewKubeconfig)
		},
		Canonicalize: func(seed *gardencore.Seed) {
			metav1.SetMetaDataLabel(&seed.ObjectMeta, v1beta1constants.LabelSeedProvider, seed.Spec.Provider.Type)
			metav1.SetMetaDataLabel(&seed.ObjectMeta, v1beta1constants.LabelSeedRegion, seed.Spec.Provider.Region)
		},
		Columns: []resource.Column[*gardencore.Seed]{
			{Name: "Status", About: "Whether the seed can take shoots.", Value: seedStatus},
			{Name: "Last Operation", About: "What is, or was last, done to the seed.", Value: func(s *gardencore.Seed) any { return lastOperation(s.Status.LastOperation) }},
			{Name: "Provider", About: "The provider type.", Value: func(s *gardencore.Seed) any { return s.Spec.Provider.Type }},
			{Name: "Region", About: "The region.", Value: func(s *gardencore.Seed) any { return s.Spec.Provider.Region }},
			{Name: "Version", About: "The gardenlet's version.", Value: func(s *gardencore.Seed) any {
				if s.Status.Gardener != nil {
					return s.Status.Gardener.Version
				}
				return resource.Unknown
			}},
			{Name: "K8S Version", About: "The Kubernetes version.", Value: func(s *gardencore.Seed) any { return ptr.Deref(s.Status.KubernetesVersion, resource.Unknown) }},
		},
	}
}

// seedConditions have to be true for a seed to be Ready.
var seedConditions = []gardencore.ConditionType{gardencore.SeedGardenletReady, gardencore.SeedSystemComponentsHealthy}

func seedStatus(seed *gardencore.Seed) any {
	status := "Ready"
	for _, kind := range seedConditions {
		switch conditionStatus(seed.Status.Conditions, kind) {
		case string(gardencore.ConditionTrue), string(gardencore.ConditionProgressing):
		case resource.Unknown, string(gardencore.ConditionUnknown):
			if status == "Ready" {
				status = "Unknown"
			}
		default:
			status = "NotReady"
		}
	}
	for _, condition := range seed.Status.Conditions {
		if condition.Status == gardencore.ConditionFalse {
			status = "NotReady"
		}
	}
	return status
}
