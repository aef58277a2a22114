package corevalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ValidateNamespacedCloudProfile checks a new namespaced cloud profile alone. An admission plugin checks whether it
// matches its parent.
func ValidateNamespacedCloudProfile(profile *gardencore.NamespacedCloudProfile) field.ErrorList {
	spec, path := &profile.Spec, field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&profile.ObjectMeta, true, ValidateName, field.NewPath("metadata")),
		supported(path.Child("parent", "kind"), spec.Parent.Kind, constants.CloudProfileReferenceKindCloudProfile),
		required(path.Child("parent", "name"), spec.Parent.Name),
		validateOwnKubernetesVersions(spec.Kubernetes, path.Child("kubernetes")),
		ValidateMachineImages(spec.MachineImages, nil, path.Child("machineImages"), true),
		validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes")),
		validateMachineTypes(spec.MachineTypes, nil, path.Child("machineTypes")),
		validateCABundle(spec.CABundle, path.Child("caBundle")),
		validateLimits(spec.Limits, path.Child("limits")),
	)
}

// ValidateNamespacedCloudProfileUpdate checks a changed namespaced cloud profile: its parent must not change.
func ValidateNamespacedCloudProfileUpdate(newProfile, oldProfile *gardencore.NamespacedCloudProfile) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newProfile.ObjectMeta, &oldProfile.ObjectMeta, field.NewPath("metadata")),
		apivalidation.ValidateImmutableField(newProfile.Spec.Parent, oldProfile.Spec.Parent, field.NewPath("spec", "parent")),
		ValidateNamespacedCloudProfile(newProfile),
	)
}

// ValidateNamespacedCloudProfileStatusUpdate accepts any status: only Gardener's controller may write the status, and
// it computes the status from valid specifications.
func ValidateNamespacedCloudProfileStatusUpdate(_, _ *gardencore.NamespacedCloudProfile) field.ErrorList {
	return nil
}

// ValidateNamespacedCloudProfileStatus checks the complete profile in the status. It checks only the parts that a
// namespaced cloud profile can change, because the parent has been checked already.
func ValidateNamespacedCloudProfileStatus(spec *gardencore.CloudProfileSpec, path *field.Path) field.ErrorList {
	capabilities := CapabilitiesOf(spec.MachineCapabilities)
	errs := validateKubernetesSettings(spec.Kubernetes, path.Child("kubernetes"))
	if len(spec.MachineImages) > 0 {
		errs = append(errs, validateCloudProfileMachineImages(spec.MachineImages, capabilities, path.Child("machineImages"))...)
	}
	if len(spec.MachineTypes) > 0 {
		errs = append(errs, validateCloudProfileMachineTypes(spec.MachineTypes, capabilities, path.Child("machineTypes"))...)
	}
	return append(errs, validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
}

// validateOwnKubernetesVersions checks the Kubernetes versions of a namespaced cloud profile. They may extend
// versions of the parent, but not reclassify them.
func validateOwnKubernetesVersions(settings *gardencore.KubernetesSettings, path *field.Path) field.ErrorList {
	if settings == nil {
		return nil
	}
	var errs field.ErrorList
	for i, version := range settings.Versions {
		if version.Classification != nil {
			errs = append(errs, field.Forbidden(path.Child("versions").Index(i).Child("classification"),
				"must not be set in a NamespacedCloudProfile"))
		}
	}
	return append(errs, validateKubernetesVersions(settings.Versions, path)...)
}
