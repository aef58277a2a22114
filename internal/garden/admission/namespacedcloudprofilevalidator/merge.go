package namespacedcloudprofilevalidator

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

const architecture = v1beta1constants.ArchitectureName

// Merge returns the merged spec of a NamespacedCloudProfile and its parent: everything that a Shoot that refers to it
// may use.
func Merge(own *gardencore.NamespacedCloudProfileSpec, parent *gardencore.CloudProfileSpec) *gardencore.CloudProfileSpec {
	own, merged := ConvertToParentFormat(own, parent.MachineCapabilities), parent.DeepCopy()
	if own.Kubernetes != nil {
		merged.Kubernetes.Versions = mergeLists(merged.Kubernetes.Versions, own.Kubernetes.Versions, false,
			func(v *gardencore.ExpirableVersion) string { return v.Version },
			func(base, override *gardencore.ExpirableVersion) { base.ExpirationDate = override.ExpirationDate })
	}
	merged.MachineImages = mergeLists(merged.MachineImages, own.MachineImages, true,
		func(i *gardencore.MachineImage) string { return i.Name }, mergeImage)
	merged.MachineTypes = mergeLists(merged.MachineTypes, own.MachineTypes, true,
		func(t *gardencore.MachineType) string { return t.Name }, replace)
	merged.VolumeTypes = mergeLists(merged.VolumeTypes, own.VolumeTypes, true,
		func(t *gardencore.VolumeType) string { return t.Name }, replace)
	if own.CABundle != nil {
		merged.CABundle = new(ptr.Deref(merged.CABundle, "") + *own.CABundle)
	}
	if own.Limits != nil {
		if merged.Limits == nil {
			merged.Limits = &gardencore.Limits{}
		}
		if ptr.Deref(own.Limits.MaxNodesTotal, 0) > 0 {
			merged.Limits.MaxNodesTotal = own.Limits.MaxNodesTotal
		}
	}
	fillArchitectures(merged)
	return merged
}

// mergeLists merges overrides into the base items with the same key. Items with a new key are appended if add is set,
// and left out otherwise.
func mergeLists[T any](base, overrides []T, add bool, key func(*T) string, merge func(base, override *T)) []T {
	var (
		merged = slices.Clone(base)[:0]
		index  = map[string]int{}
	)
	for i := range base {
		if at, double := index[key(&base[i])]; double {
			merged[at] = base[i]
			continue
		}
		index[key(&base[i])] = len(merged)
		merged = append(merged, base[i])
	}
	for i := range overrides {
		if at, known := index[key(&overrides[i])]; known {
			merge(&merged[at], &overrides[i])
		} else if add {
			index[key(&overrides[i])] = len(merged)
			merged = append(merged, overrides[i])
		}
	}
	return merged
}

func replace[T any](base, override *T) { *base = *override }

func mergeImage(base, override *gardencore.MachineImage) {
	if ptr.Deref(override.UpdateStrategy, "") != "" {
		base.UpdateStrategy = override.UpdateStrategy
	}
	base.Versions = mergeLists(base.Versions, override.Versions, true,
		func(v *gardencore.MachineImageVersion) string { return v.Version }, mergeImageVersion)
}

// mergeImageVersion overrides only the expiration date, unless the override is a complete version, which the profile
// had before its parent got it.
func mergeImageVersion(base, override *gardencore.MachineImageVersion) {
	whole := len(override.Architectures) > 0 || len(override.CapabilityFlavors) > 0 || len(override.CRI) > 0 ||
		ptr.Deref(override.KubeletVersionConstraint, "") != "" || ptr.Deref(override.Classification, "") != ""
	if whole {
		*base = *override
	} else {
		base.ExpirationDate = override.ExpirationDate
	}
}

// fillArchitectures sets missing architectures: to those of the capabilities, or else to amd64.
func fillArchitectures(spec *gardencore.CloudProfileSpec) {
	for i := range spec.MachineTypes {
		machineType := &spec.MachineTypes[i]
		effective := machineType.GetArchitecture(spec.MachineCapabilities)
		if effective == "" {
			machineType.Architecture = new(v1beta1constants.ArchitectureAMD64)
		} else if machineType.Architecture == nil {
			machineType.Architecture = &effective
		}
	}
	for i := range spec.MachineImages {
		for j := range spec.MachineImages[i].Versions {
			version := &spec.MachineImages[i].Versions[j]
			if len(version.Architectures) > 0 {
				continue
			}
			if version.Architectures = imageArchitectures(version.CapabilityFlavors, spec.MachineCapabilities); len(version.Architectures) == 0 {
				version.Architectures = []string{v1beta1constants.ArchitectureAMD64}
			}
		}
	}
}

// imageArchitectures returns the architectures of an image version's flavors. An image without flavors has all
// architectures of the definitions.
func imageArchitectures(flavors []gardencore.MachineImageFlavor, definitions []gardencore.CapabilityDefinition) []string {
	if len(flavors) == 0 {
		flavors = []gardencore.MachineImageFlavor{{}}
	}
	return architecturesOf(flavors, func(c gardencore.Capabilities) gardencore.Capabilities {
		return gardencore.GetCapabilitiesWithAppliedDefaults(c, definitions)
	})
}

func architecturesOf(flavors []gardencore.MachineImageFlavor, complete func(gardencore.Capabilities) gardencore.Capabilities) []string {
	found := sets.New[string]()
	for _, flavor := range flavors {
		found.Insert(complete(flavor.Capabilities)[architecture]...)
	}
	return sets.List(found)
}

// ConvertToParentFormat returns a copy of the spec that expresses the architectures of images and machines in the
// format of its parent: as capabilities if the parent defines any, else as architectures.
func ConvertToParentFormat(spec *gardencore.NamespacedCloudProfileSpec,
	definitions []gardencore.CapabilityDefinition) *gardencore.NamespacedCloudProfileSpec {
	spec = spec.DeepCopy()
	convertVersion, convertType := versionToArchitectures, typeToArchitecture
	if len(definitions) > 0 {
		convertVersion = versionToCapabilities
		convertType = func(t *gardencore.MachineType) { typeToCapabilities(t, definitions) }
	}
	for i := range spec.MachineImages {
		for j := range spec.MachineImages[i].Versions {
			convertVersion(&spec.MachineImages[i].Versions[j])
		}
	}
	for i := range spec.MachineTypes {
		convertType(&spec.MachineTypes[i])
	}
	return spec
}

func versionToCapabilities(version *gardencore.MachineImageVersion) {
	if len(version.CapabilityFlavors) > 0 {
		return
	}
	version.CapabilityFlavors = []gardencore.MachineImageFlavor{}
	for _, value := range version.Architectures {
		version.CapabilityFlavors = append(version.CapabilityFlavors, gardencore.MachineImageFlavor{
			Capabilities: gardencore.Capabilities{architecture: {value}},
		})
	}
}

func versionToArchitectures(version *gardencore.MachineImageVersion) {
	if len(version.Architectures) == 0 {
		version.Architectures = architecturesOf(version.CapabilityFlavors, func(c gardencore.Capabilities) gardencore.Capabilities { return c })
	}
	version.CapabilityFlavors = nil
}

func typeToCapabilities(machineType *gardencore.MachineType, definitions []gardencore.CapabilityDefinition) {
	if len(machineType.Capabilities) > 0 {
		return
	}
	value := machineType.GetArchitecture(definitions)
	if value == "" {
		value = ptr.Deref(machineType.Architecture, v1beta1constants.ArchitectureAMD64)
	}
	machineType.Capabilities = gardencore.Capabilities{architecture: {value}}
}

func typeToArchitecture(machineType *gardencore.MachineType) {
	if values := machineType.Capabilities[architecture]; machineType.Architecture == nil && len(values) > 0 {
		machineType.Architecture = &values[0]
	}
	machineType.Capabilities = nil
}
