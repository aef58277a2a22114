package cloudprofile

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// MachineType returns the machine type with the given name, and nil if there is none.
func MachineType(types []gardencore.MachineType, name string) *gardencore.MachineType {
	return validation.Find(types, func(t *gardencore.MachineType) bool { return t.Name == name })
}

// VolumeType returns the volume type with the given name, and nil if there is none.
func VolumeType(types []gardencore.VolumeType, name string) *gardencore.VolumeType {
	return validation.Find(types, func(t *gardencore.VolumeType) bool { return t.Name == name })
}

// Region returns the region with the given name, and nil if there is none.
func Region(regions []gardencore.Region, name string) *gardencore.Region {
	return validation.Find(regions, func(r *gardencore.Region) bool { return r.Name == name })
}

// KubernetesVersion returns the given Kubernetes version, and nil if there is none.
func KubernetesVersion(versions []gardencore.ExpirableVersion, version string) *gardencore.ExpirableVersion {
	return validation.Find(versions, func(v *gardencore.ExpirableVersion) bool { return v.Version == version })
}

// ImageVersion returns the given version of the machine image, and nil if there is none.
func ImageVersion(images []gardencore.MachineImage, name, version string) *gardencore.MachineImageVersion {
	for i := range images {
		found := validation.Find(images[i].Versions, func(v *gardencore.MachineImageVersion) bool { return v.Version == version })
		if images[i].Name == name && found != nil {
			return found
		}
	}
	return nil
}

// DefaultArchitecture returns the architecture for a worker pool that does not set one: the only architecture of its
// machine type, or else amd64.
func DefaultArchitecture(profile *gardencore.CloudProfileSpec, machineType string) string {
	if t := MachineType(profile.MachineTypes, machineType); t != nil {
		if architecture := t.GetArchitecture(profile.MachineCapabilities); architecture != "" {
			return architecture
		}
	}
	return v1beta1constants.ArchitectureAMD64
}

// SupportsArchitecture reports whether an image version supports an architecture. Capabilities, if the profile defines
// them, take precedence over the list of architectures.
func SupportsArchitecture(version *gardencore.MachineImageVersion, architecture string,
	definitions []gardencore.CapabilityDefinition) bool {
	var architectures []string
	if len(version.CapabilityFlavors) == 0 {
		if definition := validation.Find(definitions,
			func(d *gardencore.CapabilityDefinition) bool { return d.Name == v1beta1constants.ArchitectureName }); definition != nil {
			architectures = definition.Values
		}
	}
	for _, flavor := range version.CapabilityFlavors {
		architectures = append(architectures, flavor.Capabilities[v1beta1constants.ArchitectureName]...)
	}
	if len(architectures) == 0 {
		architectures = version.Architectures
	}
	return slices.Contains(architectures, architecture)
}

// Supports reports whether an image version has a flavor for machines with the given capabilities: a flavor and the
// machines must have a common value for each capability. A capability that a flavor or the machines do not set has all
// values of the definitions. An image without flavors supports all machines.
func Supports(version *gardencore.MachineImageVersion, capabilities gardencore.Capabilities,
	definitions []gardencore.CapabilityDefinition) bool {
	wanted := gardencore.GetCapabilitiesWithAppliedDefaults(capabilities, definitions)
	return len(version.CapabilityFlavors) == 0 ||
		slices.ContainsFunc(version.CapabilityFlavors, func(flavor gardencore.MachineImageFlavor) bool {
			offered := gardencore.GetCapabilitiesWithAppliedDefaults(flavor.Capabilities, definitions)
			for name, values := range offered {
				if !slices.ContainsFunc(values, func(value string) bool { return slices.Contains(wanted[name], value) }) {
					return false
				}
			}
			return true
		})
}

// UpdatableInPlace reports whether nodes can be updated in place to an image version.
func UpdatableInPlace(version *gardencore.MachineImageVersion) bool {
	return version.InPlaceUpdates != nil && version.InPlaceUpdates.Supported
}
