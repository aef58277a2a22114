package cloudprofile

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"
)

// MachineType is the machine type of this name; nil if there is none.
func MachineType(types []gardencore.MachineType, name string) *gardencore.MachineType {
	return find(types, func(t *gardencore.MachineType) bool { return t.Name == name })
}

// VolumeType is the volume type of this name; nil if there is none.
func VolumeType(types []gardencore.VolumeType, name string) *gardencore.VolumeType {
	return find(types, func(t *gardencore.VolumeType) bool { return t.Name == name })
}

// Region is the region of this name; nil if there is none.
func Region(regions []gardencore.Region, name string) *gardencore.Region {
	return find(regions, func(r *gardencore.Region) bool { return r.Name == name })
}

// ImageVersion is this version of a machine image; nil if there is none.
func ImageVersion(images []gardencore.MachineImage, name, version string) *gardencore.MachineImageVersion {
	for i := range images {
		if images[i].Name != name {
			continue
		}
		if found := find(images[i].Versions, func(v *gardencore.MachineImageVersion) bool { return v.Version == version }); found != nil {
			return found
		}
	}
	return nil
}

// DefaultArchitecture is the architecture of a worker pool that names none: the only one that its machine type has, or
// else amd64.
func DefaultArchitecture(profile *gardencore.CloudProfileSpec, machineType string) string {
	if t := MachineType(profile.MachineTypes, machineType); t != nil {
		if architecture := t.GetArchitecture(profile.MachineCapabilities); architecture != "" {
			return architecture
		}
	}
	return v1beta1constants.ArchitectureAMD64
}

// RunsOn says whether an image version is made for an architecture. Capabilities, where the profile defines them, win
// over the list of architectures.
func RunsOn(version *gardencore.MachineImageVersion, architecture string, definitions []gardencore.CapabilityDefinition) bool {
	var architectures []string
	if len(version.CapabilityFlavors) == 0 {
		if definition := find(definitions,
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

// Supports says whether an image version has a flavor for machines of these capabilities: one that shares a value with
// them for each capability. What a side does not mention it has with all values. An image without flavors has one for
// everything.
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

// UpdatableInPlace says whether nodes with an image version can take another one and live on.
func UpdatableInPlace(version *gardencore.MachineImageVersion) bool {
	return version.InPlaceUpdates != nil && version.InPlaceUpdates.Supported
}

// Usable says whether something is offered for new worker pools.
func Usable(flag *bool) bool { return ptr.Deref(flag, false) }

// find is the first item that matches, in place; nil if none does.
func find[T any](items []T, matches func(*T) bool) *T {
	if i := slices.IndexFunc(items, func(item T) bool { return matches(&item) }); i >= 0 {
		return &items[i]
	}
	return nil
}
