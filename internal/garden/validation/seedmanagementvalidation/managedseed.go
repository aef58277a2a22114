package seedmanagementvalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// ValidateManagedSeed checks a managed seed without comparing it to an old one.
func ValidateManagedSeed(seed *gardenseedmanagement.ManagedSeed) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&seed.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		validation.ValidateOperation(seed.Annotations, constants.GardenerOperationReconcile, constants.GardenerOperationRenewKubeconfig),
		validateManagedSeedSpec(&seed.Spec, field.NewPath("spec"), false),
	)
}

// ValidateManagedSeedUpdate checks a changed managed seed.
func ValidateManagedSeedUpdate(newSeed, oldSeed *gardenseedmanagement.ManagedSeed) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newSeed.ObjectMeta, &oldSeed.ObjectMeta, field.NewPath("metadata")),
		validation.ValidateOperationUpdate(newSeed.Annotations, oldSeed.Annotations),
		validateManagedSeedSpecUpdate(&newSeed.Spec, &oldSeed.Spec, field.NewPath("spec")),
		ValidateManagedSeed(newSeed),
	)
}

// ValidateManagedSeedStatusUpdate checks a changed status.
func ValidateManagedSeedStatusUpdate(newSeed, oldSeed *gardenseedmanagement.ManagedSeed) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newSeed.ObjectMeta, &oldSeed.ObjectMeta, field.NewPath("metadata")),
		validation.NotNegative(&newSeed.Status.ObservedGeneration, field.NewPath("status", "observedGeneration")),
	)
}

func validateManagedSeedTemplate(template *gardenseedmanagement.ManagedSeedTemplate, path *field.Path) field.ErrorList {
	return slices.Concat(
		metav1validation.ValidateLabels(template.Labels, path.Child("metadata", "labels")),
		apivalidation.ValidateAnnotations(template.Annotations, path.Child("metadata", "annotations")),
		validateManagedSeedSpec(&template.Spec, path.Child("spec"), true),
	)
}

// validateManagedSeedSpec checks the specification of a managed seed. The shoot is required, except in a template,
// where it is filled in later.
func validateManagedSeedSpec(spec *gardenseedmanagement.ManagedSeedSpec, path *field.Path, inTemplate bool) field.ErrorList {
	errs := validateGardenlet(&spec.Gardenlet, path.Child("gardenlet"))
	shootPath := path.Child("shoot")
	switch {
	case inTemplate:
	case spec.Shoot == nil:
		errs = append(errs, field.Required(shootPath, "must be set"))
	case spec.Shoot.Name == "":
		errs = append(errs, field.Required(shootPath.Child("name"), "must not be empty"))
	}
	return errs
}

func validateManagedSeedSpecUpdate(newSpec, oldSpec *gardenseedmanagement.ManagedSeedSpec, path *field.Path) field.ErrorList {
	newGardenlet, oldGardenlet, gardenletPath := newSpec.Gardenlet, oldSpec.Gardenlet, path.Child("gardenlet")
	return slices.Concat(
		apivalidation.ValidateImmutableField(newSpec.Shoot, oldSpec.Shoot, path.Child("shoot")),
		validateConfigurationUpdate(newGardenlet.Config, oldGardenlet.Config, gardenletPath.Child("config")),
		apivalidation.ValidateImmutableField(newGardenlet.Bootstrap, oldGardenlet.Bootstrap, gardenletPath.Child("bootstrap")),
		apivalidation.ValidateImmutableField(newGardenlet.MergeWithParent, oldGardenlet.MergeWithParent, gardenletPath.Child("mergeWithParent")),
	)
}

func validateGardenlet(gardenlet *gardenseedmanagement.GardenletConfig, path *field.Path) field.ErrorList {
	connection := connectionRules{
		bootstrap:       ptr.Deref(gardenlet.Bootstrap, gardenseedmanagement.BootstrapNone),
		mergeWithParent: ptr.Deref(gardenlet.MergeWithParent, false),
	}
	return slices.Concat(
		validation.Optional(gardenlet.Deployment, path.Child("deployment"), validateDeployment),
		validateConfiguration(gardenlet.Config, connection, path.Child("config")),
		validation.Supported(path.Child("bootstrap"), connection.bootstrap,
			gardenseedmanagement.BootstrapServiceAccount, gardenseedmanagement.BootstrapToken, gardenseedmanagement.BootstrapNone),
	)
}
