package core

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// syncArchitectures keeps the architecture fields of a CloudProfile and the capability "architecture" in sync. If
// capability definitions with more than one architecture are added, it fills the capabilities from the architecture
// fields; then it fills the architecture fields from the capabilities. It fills only what the user left out: the
// validation refuses contradictions. If the definitions are removed, it removes all capabilities.
func syncArchitectures(spec, old *gardencore.CloudProfileSpec) {
	defined := spec.MachineCapabilities
	switch {
	case len(defined) == 0 && len(old.MachineCapabilities) > 0:
		dropCapabilities(spec)
	case len(defined) > 0:
		if len(old.MachineCapabilities) == 0 && len(validation.CapabilitiesOf(defined)[v1beta1constants.ArchitectureName]) > 1 {
			fillCapabilities(spec)
		}
		fillArchitectures(spec)
	}
}

func dropCapabilities(spec *gardencore.CloudProfileSpec) {
	for version := range imageVersions(spec) {
		version.CapabilityFlavors = nil
	}
	for i := range spec.MachineTypes {
		spec.MachineTypes[i].Capabilities = nil
	}
}

func fillCapabilities(spec *gardencore.CloudProfileSpec) {
	capabilities := func(architecture string) gardencore.Capabilities {
		return gardencore.Capabilities{v1beta1constants.ArchitectureName: {architecture}}
	}
	for version := range imageVersions(spec) {
		if len(version.CapabilityFlavors) > 0 {
			continue
		}
		architectures := version.Architectures
		if len(architectures) == 0 {
			architectures = []string{v1beta1constants.ArchitectureAMD64}
		}
		for _, architecture := range architectures {
			version.CapabilityFlavors = append(version.CapabilityFlavors, gardencore.MachineImageFlavor{Capabilities: capabilities(architecture)})
		}
	}
	for i := range spec.MachineTypes {
		if machine := &spec.MachineTypes[i]; len(machine.Capabilities) == 0 {
			machine.Capabilities = capabilities(ptr.Deref(machine.Architecture, v1beta1constants.ArchitectureAMD64))
		}
	}
}

func fillArchitectures(spec *gardencore.CloudProfileSpec) {
	architectures := func(capabilities gardencore.Capabilities) []string {
		return gardencore.GetCapabilitiesWithAppliedDefaults(capabilities, spec.MachineCapabilities)[v1beta1constants.ArchitectureName]
	}
	for version := range imageVersions(spec) {
		if len(version.Architectures) > 0 {
			continue
		}
		flavors := version.CapabilityFlavors
		if len(flavors) == 0 {
			flavors = []gardencore.MachineImageFlavor{{}} // an image without flavors supports everything
		}
		var all []string
		for _, flavor := range flavors {
			all = append(all, architectures(flavor.Capabilities)...)
		}
		if len(all) > 0 {
			slices.Sort(all)
			version.Architectures = slices.Compact(all)
		}
	}
	for i := range spec.MachineTypes {
		machine := &spec.MachineTypes[i]
		if values := architectures(machine.Capabilities); machine.Architecture == nil && len(values) == 1 {
			machine.Architecture = ptr.To(values[0])
		}
	}
}

// imageVersions iterates over all versions of all machine images.
func imageVersions(spec *gardencore.CloudProfileSpec) func(yield func(*gardencore.MachineImageVersion) bool) {
	return func(yield func(*gardencore.MachineImageVersion) bool) {
		for i := range spec.MachineImages {
			versions := spec.MachineImages[i].Versions
			for j := range versions {
				if !yield(&versions[j]) {
					return
				}
			}
		}
	}
}
