package corevalidation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ValidateCloudProfile checks a new cloud profile.
func ValidateCloudProfile(profile *gardencore.CloudProfile) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&profile.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, ValidateCloudProfileSpec(&profile.Spec, field.NewPath("spec"))...)
}

// ValidateCloudProfileUpdate checks a changed cloud profile.
func ValidateCloudProfileUpdate(newProfile, oldProfile *gardencore.CloudProfile) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newProfile.ObjectMeta, &oldProfile.ObjectMeta, field.NewPath("metadata")),
		ValidateCloudProfile(newProfile),
		validateCloudProfileSpecUpdate(&newProfile.Spec, &oldProfile.Spec, field.NewPath("spec")),
	)
}

// ValidateCloudProfileSpec checks the specification of a cloud profile.
func ValidateCloudProfileSpec(spec *gardencore.CloudProfileSpec, path *field.Path) field.ErrorList {
	capabilities := CapabilitiesOf(spec.MachineCapabilities)
	errs := slices.Concat(
		Required(path.Child("type"), spec.Type),
		validateCapabilityDefinitions(spec.MachineCapabilities, path.Child("machineCapabilities")),
		validateKubernetesSettings(spec.Kubernetes, path.Child("kubernetes")),
		validateCloudProfileMachineImages(spec.MachineImages, capabilities, path.Child("machineImages")),
		validateCloudProfileMachineTypes(spec.MachineTypes, capabilities, path.Child("machineTypes")),
		validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes")),
		validateRegions(spec.Regions, path.Child("regions")),
		validateProfileBastion(spec, path.Child("bastion")),
		validateLimits(spec.Limits, path.Child("limits")),
		Optional(spec.CABundle, path.Child("caBundle"), validateCABundle),
	)
	return append(errs, Optional(spec.SeedSelector, path.Child("seedSelector"), validateSeedSelector)...)
}

func validateSeedSelector(selector gardencore.SeedSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(&selector.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateCloudProfileSpecUpdate(newSpec, oldSpec *gardencore.CloudProfileSpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateLimitsUpdate(newSpec.Limits, oldSpec.Limits, path.Child("limits")),
		validateExpirableVersionsUpdate(newSpec.Kubernetes.Versions, oldSpec.Kubernetes.Versions, path.Child("kubernetes", "versions")),
	)
	old := make(map[string]gardencore.MachineImage, len(oldSpec.MachineImages))
	for _, image := range oldSpec.MachineImages {
		old[image.Name] = image
	}
	for i, image := range newSpec.MachineImages {
		if before, existed := old[image.Name]; existed {
			errs = append(errs, validateExpirableVersionsUpdate(imageExpirableVersions(image.Versions), imageExpirableVersions(before.Versions),
				path.Child("machineImages").Index(i).Child("versions"))...)
		}
	}
	return errs
}

// validateKubernetesSettings checks the Kubernetes versions. The latest version must not expire.
func validateKubernetesSettings(settings gardencore.KubernetesSettings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	versionsPath := path.Child("versions")
	errs = append(errs, RequiredIf(len(settings.Versions) == 0, versionsPath, "must have at least one Kubernetes version")...)
	latest, err := LatestExpirableVersion(settings.Versions)
	errs = append(errs, InvalidIf(err != nil, versionsPath, "", fmt.Sprintf("must have a latest version: %v", err))...)
	latestPath := path.Child("versions[]")
	errs = append(errs, InvalidIf(latest.ExpirationDate != nil, latestPath.Child("expirationDate"),
		latest.ExpirationDate, fmt.Sprintf("must not be set for the latest version, %s", latest.Version))...)
	if n := len(latest.Lifecycle); n > 0 && latest.Lifecycle[n-1].Classification == gardencore.ClassificationExpired {
		errs = append(errs, field.Invalid(latestPath.Child("lifecycle"), gardencore.ClassificationExpired,
			fmt.Sprintf("must not be a stage of the latest version, %s", latest.Version)))
	}
	errs = append(errs, validateKubernetesVersions(settings.Versions, path)...)
	for i, version := range settings.Versions {
		errs = append(errs, validateSupportedVersionsConfiguration(version, settings.Versions, versionsPath.Index(i))...)
	}
	return errs
}

// validateCloudProfileMachineImages adds to ValidateMachineImages the checks that apply only to a complete profile.
func validateCloudProfileMachineImages(images []gardencore.MachineImage, capabilities gardencore.Capabilities,
	path *field.Path) field.ErrorList {
	errs := RequiredIf(len(images) == 0, path, "must have at least one machine image")
	errs = append(errs, ValidateMachineImages(images, capabilities, path, false)...)
	for i, image := range images {
		idxPath := path.Index(i)
		errs = append(errs, RequiredIf(image.UpdateStrategy == nil, idxPath.Child("updateStrategy"), "must not be empty")...)
		for j, version := range image.Versions {
			errs = append(errs, ValidateMachineImageAdditionalConfig(version, image, capabilities, idxPath.Child("versions").Index(j))...)
		}
	}
	return errs
}

// ValidateMachineImageAdditionalConfig checks the container runtimes, architectures and classification of an image
// version. They are required in a cloud profile, and in a namespaced cloud profile for versions that the latter adds.
func ValidateMachineImageAdditionalConfig(version gardencore.MachineImageVersion, image gardencore.MachineImage,
	capabilities gardencore.Capabilities, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateCRIs(version.CRI, path.Child("cri")),
		validateSupportedVersionsConfiguration(version.ExpirableVersion, imageExpirableVersions(image.Versions), path),
		validateExpirableVersion(version.ExpirableVersion, path),
	)
	if len(capabilities) == 0 {
		errs = append(errs, RequiredIf(len(version.Architectures) == 0, path.Child("architectures"), "must have at least one architecture")...)
		errs = append(errs, ForbiddenIf(len(version.CapabilityFlavors) > 0, path.Child("capabilityFlavors"),
			"must not be set unless spec.machineCapabilities is")...)
	}
	return errs
}

func validateCloudProfileMachineTypes(types []gardencore.MachineType, capabilities gardencore.Capabilities,
	path *field.Path) field.ErrorList {
	errs := RequiredIf(len(types) == 0, path, "must have at least one machine type")
	errs = append(errs, validateMachineTypes(types, capabilities, path)...)
	if len(capabilities) > 0 {
		return errs
	}
	for i, machineType := range types {
		errs = append(errs, Required(path.Index(i).Child("architecture"), ptr.Deref(machineType.Architecture, ""))...)
		errs = append(errs, ForbiddenIf(len(machineType.Capabilities) > 0, path.Index(i).Child("capabilities"),
			"must not be set unless spec.machineCapabilities is")...)
	}
	return errs
}

func validateRegions(regions []gardencore.Region, path *field.Path) field.ErrorList {
	errs := RequiredIf(len(regions) == 0, path, "must have at least one region")
	names := sets.New[string]()
	for i, region := range regions {
		idxPath := path.Index(i)
		errs = append(errs, distinctName(idxPath.Child("name"), names, region.Name)...)
		zones := sets.New[string]()
		for j, zone := range region.Zones {
			errs = append(errs, distinctName(idxPath.Child("zones").Index(j).Child("name"), zones, zone.Name)...)
		}
		errs = append(errs, metav1validation.ValidateLabels(region.Labels, idxPath.Child("labels"))...)
	}
	return errs
}

// ---- capabilities ----

// reservedCapabilityPrefix is reserved for capabilities that Gardener itself defines.
const reservedCapabilityPrefix = "gardener-"

// validateCapabilityDefinitions checks that the capabilities have distinct and valid names, and include the
// architecture. If a capability is repeated, the last definition counts. Errors about a single capability have the
// path path.<name>, as in Gardener.
func validateCapabilityDefinitions(definitions []gardencore.CapabilityDefinition, path *field.Path) field.ErrorList {
	if len(definitions) == 0 {
		return nil
	}
	errs := ForbiddenIf(!FeatureGate.Enabled(CloudProfileCapabilities), path,
		fmt.Sprintf("requires the feature gate %s", CloudProfileCapabilities))
	names := sets.New[string]()
	for i, definition := range definitions {
		namePath := path.Index(i).Child("name")
		errs = append(errs, Distinct(namePath, names, definition.Name)...)
		errs = append(errs, ForbiddenIf(strings.HasPrefix(definition.Name, reservedCapabilityPrefix), namePath,
			fmt.Sprintf("must not start with %s, which is reserved for Gardener's own capabilities", reservedCapabilityPrefix))...)
	}
	capabilities := CapabilitiesOf(definitions)
	architecturePath := path.Child(constants.ArchitectureName)
	architectures, defined := capabilities[constants.ArchitectureName]
	errs = append(errs, RequiredIf(!defined, architecturePath, "must be among the capabilities")...)
	for _, architecture := range architectures {
		errs = append(errs, InvalidIf(!slices.Contains(constants.ValidArchitectures, architecture), architecturePath,
			architecture, fmt.Sprintf("must be one of %v", constants.ValidArchitectures))...)
	}
	for _, name := range slices.Sorted(maps.Keys(capabilities)) {
		errs = append(errs, requiredName(path, name, unprefixedQualifiedName)...)
		values := capabilities[name]
		errs = append(errs, RequiredIf(len(values) == 0, path.Child(name), "must have at least one value")...)
		for i, value := range values {
			errs = append(errs, requiredName(path.Child(name).Index(i), value, unprefixedQualifiedName)...)
		}
	}
	return errs
}

// ---- bastion ----

// validateProfileBastion checks that the profile offers the bastion's machine type and image, and that their
// architectures match.
func validateProfileBastion(spec *gardencore.CloudProfileSpec, path *field.Path) field.ErrorList {
	bastion := spec.Bastion
	if bastion == nil {
		return nil
	}
	var (
		errs         field.ErrorList
		architecture *string // nil: any
	)
	errs = append(errs, InvalidIf(bastion.MachineType == nil && bastion.MachineImage == nil, path, "",
		"must have a machineType or a machineImage")...)
	if bastion.MachineType != nil {
		i := slices.IndexFunc(spec.MachineTypes, func(t gardencore.MachineType) bool { return t.Name == bastion.MachineType.Name })
		if i < 0 {
			errs = append(errs, field.Invalid(path.Child("machineType", "name"), bastion.MachineType.Name, "must be one of spec.machineTypes"))
		} else {
			architecture = ptr.To(spec.MachineTypes[i].GetArchitecture(spec.MachineCapabilities))
		}
	}
	if bastion.MachineImage != nil {
		errs = append(errs, validateBastionImage(spec, *bastion.MachineImage, architecture, path.Child("machineImage"))...)
	}
	return errs
}

func validateBastionImage(spec *gardencore.CloudProfileSpec, image gardencore.BastionMachineImage, architecture *string,
	path *field.Path) field.ErrorList {
	i := slices.IndexFunc(spec.MachineImages, func(m gardencore.MachineImage) bool { return m.Name == image.Name })
	if i < 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), image.Name, "must be one of spec.machineImages")}
	}
	candidates, candidatesPath := spec.MachineImages[i].Versions, path.Child("name")
	if image.Version != nil {
		candidatesPath = path.Child("version")
		j := slices.IndexFunc(candidates, func(v gardencore.MachineImageVersion) bool { return v.Version == *image.Version })
		if j < 0 {
			return field.ErrorList{field.Invalid(candidatesPath, *image.Version, "must be one of the image's versions in spec.machineImages")}
		}
		candidates = candidates[j : j+1]
	}
	capabilities := CapabilitiesOf(spec.MachineCapabilities)
	if slices.ContainsFunc(candidates, func(version gardencore.MachineImageVersion) bool {
		return (architecture == nil || version.SupportsArchitecture(capabilities, *architecture)) &&
			version.Classification != nil && currentClassification(version.ExpirableVersion) == gardencore.ClassificationSupported
	}) {
		return nil
	}
	return field.ErrorList{field.Invalid(candidatesPath, image.Name,
		fmt.Sprintf("must have a version of classification supported for the architecture %s", ptr.Deref(architecture, "of any machine")))}
}

// ---- limits ----

func validateLimits(limits *gardencore.Limits, path *field.Path) field.ErrorList {
	if limits == nil || limits.MaxNodesTotal == nil || *limits.MaxNodesTotal > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("maxNodesTotal"), *limits.MaxNodesTotal, "must be greater than 0")}
}

// validateLimitsUpdate refuses to lower a limit, because existing shoots may already reach it. Limits may be added,
// removed and raised.
func validateLimitsUpdate(newLimits, oldLimits *gardencore.Limits, path *field.Path) field.ErrorList {
	newMaximum, oldMaximum := ptr.Deref(newLimits, gardencore.Limits{}).MaxNodesTotal, ptr.Deref(oldLimits, gardencore.Limits{}).MaxNodesTotal
	if newMaximum == nil || oldMaximum == nil {
		return nil
	}
	return InvalidIf(*newMaximum < *oldMaximum, path.Child("maxNodesTotal"), *newMaximum,
		fmt.Sprintf("must not be lowered from %d", *oldMaximum))
}
