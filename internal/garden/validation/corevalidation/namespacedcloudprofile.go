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
		apivalidation.ValidateObjectMeta(&profile.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")),
		Supported(path.Child("parent", "kind"), spec.Parent.Kind, constants.CloudProfileReferenceKindCloudProfile),
		Required(path.Child("parent", "name"), spec.Parent.Name),
		Optional(spec.Kubernetes, path.Child("kubernetes"), validateOwnKubernetesVersions),
		ValidateMachineImages(spec.MachineImages, nil, path.Child("machineImages"), true),
		validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes")),
		validateMachineTypes(spec.MachineTypes, nil, path.Child("machineTypes")),
		Optional(spec.CABundle, path.Child("caBundle"), validateCABundle),
		validateLimits(spec.Limits, path.Child("limits")),
	)
}

// ValidateNamespacedCloudProfileUpdate checks a changed namespaced cloud profile: its parent must not change.
func ValidateNamespacedCloudProfileUpdate(newProfile, oldProfile *gardencore.NamespacedCloudProfile) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newProfile.ObjectMeta, &oldProfile.ObjectMeta, field.NewPath("metadata")),
		immutable(newProfile.Spec.Parent, oldProfile.Spec.Parent, field.NewPath("spec", "parent")),
		ValidateNamespacedCloudProfile(newProfile),
	)
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
func validateOwnKubernetesVersions(settings gardencore.KubernetesSettings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, version := range settings.Versions {
		errs = append(errs, ForbiddenIf(version.Classification != nil,
			path.Child("versions").Index(i).Child("classification"), "must not be set in a NamespacedCloudProfile")...)
	}
	return append(errs, validateKubernetesVersions(settings.Versions, path)...)
}
