package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func seeds() resource.Definition[*gardencore.Seed] {
	return resource.Definition[*gardencore.Seed]{
		Resource: gardencore.Resource("seeds"), Kind: "Seed", Versions: v1beta1, AllowUnconditionalUpdate: true,
		CopySpec:             func(to, from *gardencore.Seed) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.Seed) { to.Status = from.Status },
		Validate:             validation.ValidateSeed,
		ValidateUpdate:       validation.ValidateSeedUpdate,
		ValidateStatusUpdate: validation.ValidateSeedStatusUpdate,
		SpecChanged:          seedSpecChanged,
		Canonicalize: func(seed *gardencore.Seed) {
			metav1.SetMetaDataLabel(&seed.ObjectMeta, v1beta1constants.LabelSeedProvider, seed.Spec.Provider.Type)
			metav1.SetMetaDataLabel(&seed.ObjectMeta, v1beta1constants.LabelSeedRegion, seed.Spec.Provider.Region)
		},
		Columns: []resource.Column[*gardencore.Seed]{
			{Name: "Status", Description: "Whether the seed can take shoots.", Value: seedStatus},
			{Name: "Last Operation", Description: "What is, or was last, done to the seed.",
				Value: func(s *gardencore.Seed) any { return lastOperation(s.Status.LastOperation) }},
			{Name: "Provider", Description: "The provider type.", Value: func(s *gardencore.Seed) any { return s.Spec.Provider.Type }},
			{Name: "Region", Description: "The region.", Value: func(s *gardencore.Seed) any { return s.Spec.Provider.Region }},
			resource.Age[*gardencore.Seed](),
			{Name: "Version", Description: "The gardenlet's version.", Value: func(s *gardencore.Seed) any {
				return resource.OrUnknown(ptr.Deref(s.Status.Gardener, gardencore.Gardener{}).Version)
			}},
			{Name: "K8S Version", Description: "The Kubernetes version.",
				Value: func(s *gardencore.Seed) any { return ptr.Deref(s.Status.KubernetesVersion, resource.Unknown) }},
		},
	}
}

// seedSpecChanged reports whether the generation is increased: for a change of the spec, and once for each requested
// operation. All operations but reconcile stay in the annotation until the gardenlet has done them.
func seedSpecChanged(seed, old *gardencore.Seed) bool {
	if !resource.Equal(old.Spec, seed.Spec) {
		return true
	}
	if old.Annotations[v1beta1constants.GardenerOperation] == seed.Annotations[v1beta1constants.GardenerOperation] {
		return false
	}
	return resource.ConsumeOperationAnnotation(seed, v1beta1constants.GardenerOperationReconcile) || resource.HasOperationAnnotation(seed,
		v1beta1constants.SeedOperationRenewGardenAccessSecrets,
		v1beta1constants.SeedOperationRenewWorkloadIdentityTokens,
		v1beta1constants.GardenerOperationRenewKubeconfig)
}

func seedStatus(seed *gardencore.Seed) any {
	var (
		gardenlet  = resource.Condition(seed.Status.Conditions, gardencore.SeedGardenletReady)
		buckets    = resource.Condition(seed.Status.Conditions, gardencore.SeedBackupBucketsReady)
		extensions = resource.Condition(seed.Status.Conditions, gardencore.SeedExtensionsReady)
		system     = resource.Condition(seed.Status.Conditions, gardencore.SeedSystemComponentsHealthy)
	)
	good := func(status gardencore.ConditionStatus) bool {
		return status == gardencore.ConditionTrue || status == gardencore.ConditionProgressing
	}
	switch {
	case gardenlet == gardencore.ConditionUnknown:
		return "Unknown"
	case gardenlet != gardencore.ConditionTrue,
		buckets != "" && buckets != gardencore.ConditionTrue,
		!good(extensions),
		system != "" && !good(system):
		return "NotReady"
	}
	return "Ready"
}

func exposureClasses() resource.Definition[*gardencore.ExposureClass] {
	return resource.Definition[*gardencore.ExposureClass]{
		Resource: gardencore.Resource("exposureclasses"), Kind: "ExposureClass",
		ShortNames: []string{"expclass", "expcls"}, Versions: v1beta1,
		Validate:       validation.ValidateExposureClass,
		ValidateUpdate: validation.ValidateExposureClassUpdate,
		Columns: []resource.Column[*gardencore.ExposureClass]{
			{Name: "Handler", Description: "What the control plane's exposure is handled by.",
				Value: func(c *gardencore.ExposureClass) any { return c.Handler }},
		},
	}
}
