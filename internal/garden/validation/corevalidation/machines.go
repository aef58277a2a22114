package corevalidation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// CapabilitiesOf returns the values that capability definitions allow, or nil if there are no definitions.
func CapabilitiesOf(definitions []gardencore.CapabilityDefinition) gardencore.Capabilities {
	if len(definitions) == 0 {
		return nil
	}
	capabilities := make(gardencore.Capabilities, len(definitions))
	for _, definition := range definitions {
		capabilities[definition.Name] = definition.Values
	}
	return capabilities
}

// validateCapabilities refuses capabilities and values that are not defined. The errors about unknown capabilities
// have the path itself.
func validateCapabilities(capabilities, defined gardencore.Capabilities, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(capabilities)) {
		values, known := defined[name]
		if !known {
			errs = append(errs, field.NotSupported(path, name, slices.Sorted(maps.Keys(defined))))
			continue
		}
		for i, value := range capabilities[name] {
			errs = append(errs, Supported(path.Child(name).Index(i), value, values...)...)
		}
	}
	return errs
}

// ---- machine images ----

// ValidateMachineImages checks the machine images of a cloud profile or a namespaced cloud profile by the rules for
// both. The capabilities are those that the profile defines, if any.
func ValidateMachineImages(images []gardencore.MachineImage, capabilities gardencore.Capabilities, path *field.Path,
	allowEmptyVersions bool) field.ErrorList {
	var errs field.ErrorList
	for _, image := range images {
		if len(image.Versions) == 0 {
			continue
		}
		if _, err := LatestExpirableVersion(imageExpirableVersions(image.Versions)); err != nil {
			errs = append(errs, field.Invalid(path, image.Name, fmt.Sprintf("must have comparable versions: %v", err)))
			break
		}
	}
	names, nameVersions := sets.New[string](), sets.New[string]()
	for i, image := range images {
		idxPath := path.Index(i)
		errs = append(errs, Distinct(idxPath, names, image.Name)...)
		errs = append(errs, validateMachineImage(image, allowEmptyVersions, idxPath)...)
		for j, version := range image.Versions {
			versionPath := idxPath.Child("versions").Index(j)
			errs = append(errs, Distinct(versionPath, nameVersions, image.Name+"-"+version.Version)...)
			errs = append(errs, validateMachineImageVersion(version, capabilities, versionPath)...)
		}
	}
	return errs
}

func validateMachineImage(image gardencore.MachineImage, allowEmptyVersions bool, path *field.Path) field.ErrorList {
	return slices.Concat(
		requiredName(path.Child("name"), image.Name, unprefixedQualifiedName),
		RequiredIf(len(image.Versions) == 0 && !allowEmptyVersions, path.Child("versions"), "must have at least one version"),
		SupportedIfSet(path.Child("updateStrategy"), image.UpdateStrategy, gardencore.UpdateStrategyMajor,
			gardencore.UpdateStrategyMinor, gardencore.UpdateStrategyPatch),
	)
}

func validateMachineImageVersion(version gardencore.MachineImageVersion, capabilities gardencore.Capabilities,
	path *field.Path) field.ErrorList {
	errs := Required(path.Child("version"), version.Version)
	errs = append(errs, validateSemver(version.Version, path.Child("version"))...)
	if updates := version.InPlaceUpdates; updates != nil && updates.MinVersionForUpdate != nil {
		errs = append(errs, validateSemver(*updates.MinVersionForUpdate, path.Child("minVersionForInPlaceUpdate"))...)
	}
	errs = append(errs, validateImageArchitectures(version, capabilities, path)...)
	if len(capabilities) > 0 {
		for i, flavor := range version.CapabilityFlavors {
			errs = append(errs, validateCapabilities(flavor.Capabilities, capabilities, path.Child("capabilityFlavors").Index(i))...)
		}
	}
	return append(errs, Optional(version.KubeletVersionConstraint, path.Child("kubeletVersionConstraint"), validateConstraint)...)
}

func validateConstraint(constraint string, path *field.Path) field.ErrorList {
	_, err := semver.NewConstraint(constraint)
	return InvalidIf(err != nil, path, constraint, fmt.Sprintf("must be a version constraint: %v", err))
}

func validateSemver(version string, path *field.Path) field.ErrorList {
	_, err := semver.NewVersion(version)
	return InvalidIf(err != nil, path, version, "must be a semantic version; the provider can map it to the image's own version")
}

// validateImageArchitectures checks the architectures of an image version: the list of the version itself or, if the
// profile defines capabilities, those of its flavors. In the latter case, the list must agree with the flavors, if
// there is one.
func validateImageArchitectures(version gardencore.MachineImageVersion, capabilities gardencore.Capabilities,
	path *field.Path) field.ErrorList {
	var (
		errs    field.ErrorList
		allowed = constants.ValidArchitectures
	)
	if len(capabilities) > 0 {
		allowed = capabilities[constants.ArchitectureName]
		flavorsPath := path.Child("capabilityFlavors")
		if len(allowed) > 1 && len(version.CapabilityFlavors) == 0 {
			return field.ErrorList{field.Required(flavorsPath, "must have a flavor per architecture if spec.machineCapabilities defines several")}
		}
		for i, flavor := range version.CapabilityFlavors {
			architectures, architecturePath := flavor.Capabilities[constants.ArchitectureName],
				flavorsPath.Index(i).Child(constants.ArchitectureName)
			if len(architectures) == 0 && len(allowed) > 1 {
				errs = append(errs, field.Required(architecturePath, "must name one architecture if spec.machineCapabilities defines several"))
			} else if len(architectures) > 1 {
				errs = append(errs, field.Invalid(architecturePath, architectures, "must name only one architecture"))
			}
		}
		if offered := flavorArchitectures(version.CapabilityFlavors, allowed); !offered.HasAll(version.Architectures...) {
			errs = append(errs, field.Invalid(path.Child("architectures"), version.Architectures,
				fmt.Sprintf("must agree with the architectures of the capability flavors: %s", strings.Join(sets.List(offered), ", "))))
		}
	}
	for i, architecture := range version.Architectures {
		errs = append(errs, Supported(path.Child("architectures").Index(i), architecture, allowed...)...)
	}
	return errs
}

// flavorArchitectures returns the architectures of the flavors. If they have none and only one is allowed, it returns
// the allowed one.
func flavorArchitectures(flavors []gardencore.MachineImageFlavor, allowed []string) sets.Set[string] {
	named := sets.New[string]()
	for _, flavor := range flavors {
		named.Insert(flavor.Capabilities[constants.ArchitectureName]...)
	}
	if len(named) == 0 && len(allowed) == 1 {
		named.Insert(allowed...)
	}
	return named
}

// ---- machine types ----

// validateMachineTypes checks the machine types of a cloud profile or a namespaced cloud profile by the rules for both.
func validateMachineTypes(types []gardencore.MachineType, capabilities gardencore.Capabilities, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, machineType := range types {
		idxPath := path.Index(i)
		errs = append(errs, requiredName(idxPath.Child("name"), machineType.Name, unprefixedQualifiedName)...)
		if !insertNew(names, machineType.Name) {
			errs = append(errs, field.Duplicate(idxPath.Child("name"), machineType.Name))
			continue
		}
		errs = append(errs, validateMachineType(machineType, capabilities, idxPath)...)
	}
	return errs
}

func validateMachineType(machineType gardencore.MachineType, capabilities gardencore.Capabilities, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateQuantity("cpu", machineType.CPU, path.Child("cpu")),
		validateQuantity("gpu", machineType.GPU, path.Child("gpu")),
		validateQuantity("memory", machineType.Memory, path.Child("memory")),
		validateMachineTypeArchitecture(machineType, capabilities, path),
	)
	if len(capabilities) > 0 {
		errs = append(errs, validateCapabilities(machineType.Capabilities, capabilities, path.Child("capabilities"))...)
	}
	return append(errs, Optional(machineType.Storage, path.Child("storage"), validateMachineTypeStorage)...)
}

func validateMachineTypeArchitecture(machineType gardencore.MachineType, capabilities gardencore.Capabilities,
	path *field.Path) field.ErrorList {
	var (
		errs         field.ErrorList
		architecture = ptr.Deref(machineType.Architecture, "")
	)
	if len(capabilities) > 0 {
		capable := machineType.Capabilities[constants.ArchitectureName]
		errs = append(errs, InvalidIf(len(capable) > 1, path.Child("capabilities", constants.ArchitectureName), capable,
			"must name only one architecture")...)
		if len(capable) == 1 && architecture != "" && architecture != capable[0] {
			errs = append(errs, field.Invalid(path.Child("architecture"), architecture,
				fmt.Sprintf("must agree with the architecture among the capabilities, %s", capable[0])))
		}
	}
	if architecture != "" {
		errs = append(errs, Supported(path.Child("architecture"), architecture, constants.ValidArchitectures...)...)
	}
	return errs
}

func validateMachineTypeStorage(storage gardencore.MachineTypeStorage, path *field.Path) field.ErrorList {
	if (storage.StorageSize == nil) == (storage.MinSize == nil) {
		return field.ErrorList{field.Invalid(path, storage.Type, "must have either a size or a minSize")}
	}
	return append(optionalQuantity(storage.StorageSize, path.Child("size")), optionalQuantity(storage.MinSize, path.Child("minSize"))...)
}

// ---- volume types ----

// validateVolumeTypes checks volume types. It stops at the first repeated name, as Gardener does.
func validateVolumeTypes(types []gardencore.VolumeType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, volumeType := range types {
		idxPath := path.Index(i)
		errs = append(errs, requiredName(idxPath.Child("name"), volumeType.Name, unprefixedQualifiedName)...)
		if !insertNew(names, volumeType.Name) {
			return append(errs, field.Duplicate(idxPath.Child("name"), volumeType.Name))
		}
		errs = append(errs, requiredName(idxPath.Child("class"), volumeType.Class, unprefixedQualifiedName)...)
		errs = append(errs, optionalQuantity(volumeType.MinSize, idxPath.Child("minSize"))...)
	}
	return errs
}

// ---- container runtimes ----

// validateCRIs checks that the container runtime interfaces are known and distinct.
func validateCRIs(cris []gardencore.CRI, path *field.Path) field.ErrorList {
	if len(cris) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one container runtime interface")}
	}
	var errs field.ErrorList
	names := sets.New[gardencore.CRIName]()
	for i, cri := range cris {
		idxPath := path.Index(i)
		errs = append(errs, Distinct(idxPath, names, cri.Name)...)
		errs = append(errs, Supported(idxPath.Child("name"), cri.Name, gardencore.CRINameContainerD)...)
		types := sets.New[string]()
		for j, runtime := range cri.ContainerRuntimes {
			typePath := idxPath.Child("containerRuntimes").Index(j).Child("type")
			errs = append(errs, validateUnprefixedQualifiedName(runtime.Type, typePath)...)
			errs = append(errs, Distinct(typePath, types, runtime.Type)...)
		}
	}
	return errs
}
