package core

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"
)

// syncArchitectures makes the architecture fields of a CloudProfile say what its capabilities say. In the update that
// introduces capabilities it is the other way round where the capabilities leave the choice open. Fields that the user
// has set otherwise are left for the validation to refuse.
func syncArchitectures(spec, old *gardencore.CloudProfileSpec) {
	i := slices.IndexFunc(spec.MachineCapabilities, func(d gardencore.CapabilityDefinition) bool { return d.Name == v1beta1constants.ArchitectureName })
	if i < 0 {
		return
	}
	sync := architectureSync{
		definitions: spec.MachineCapabilities,
		// Only where there are several can the old fields tell which one is meant.
		migrate: len(old.MachineCapabilities) == 0 && len(spec.MachineCapabilities[i].Values) != 1,
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		for j := range image.Versions {
			version := &image.Versions[j]
			sync.imageVersion(version, findImageVersion(old.MachineImages, image.Name, version.Version))
		}
	}
	for i := range spec.MachineTypes {
		machine := &spec.MachineTypes[i]
		var before *gardencore.MachineType
		for j := range slices.Backward(old.MachineTypes) {
			if old.MachineTypes[j].Name == machine.Name {
				before = &old.MachineTypes[j]
				break
			}
		}
		sync.machineType(machine, before)
	}
}

type architectureSync struct {
	definitions []gardencore.CapabilityDefinition
	migrate     bool
}

func (s architectureSync) imageVersion(version, old *gardencore.MachineImageVersion) {
	if old != nil && len(version.Architectures) > 0 && !slices.Equal(old.Architectures, version.Architectures) {
		return
	}
	if s.migrate && len(version.Architectures) > 0 && len(version.CapabilityFlavors) == 0 && !slices.Equal(s.imageArchitectures(version), version.Architectures) {
		for _, architecture := range version.Architectures {
			version.CapabilityFlavors = append(version.CapabilityFlavors, gardencore.MachineImageFlavor{
				Capabilities: gardencore.Capabilities{v1beta1constants.ArchitectureName: {architecture}}})
		}
		return
	}
	if architectures := s.imageArchitectures(version); len(architectures) > 0 {
		version.Architectures = architectures
	}
}

// imageArchitectures are those of all flavors of an image version, each once.
func (s architectureSync) imageArchitectures(version *gardencore.MachineImageVersion) []string {
	flavors := version.CapabilityFlavors
	if len(flavors) == 0 {
		flavors = []gardencore.MachineImageFlavor{{}}
	}
	var architectures []string
	for _, flavor := range flavors {
		for _, architecture := range s.architectures(flavor.Capabilities) {
			if !slices.Contains(architectures, architecture) {
				architectures = append(architectures, architecture)
			}
		}
	}
	return architectures
}

func (s architectureSync) machineType(machine, old *gardencore.MachineType) {
	architecture := ptr.Deref(machine.Architecture, "")
	if old != nil && architecture != "" && ptr.Deref(old.Architecture, "") != architecture {
		return
	}
	values := s.architectures(machine.Capabilities)
	if s.migrate && architecture != "" && len(values) != 1 {
		if machine.Capabilities == nil {
			machine.Capabilities = gardencore.Capabilities{}
		}
		machine.Capabilities[v1beta1constants.ArchitectureName] = []string{architecture}
		return
	}
	if len(values) == 1 {
		machine.Architecture = ptr.To(values[0])
	}
}

// architectures are those that capabilities name; all that are defined if they name none.
func (s architectureSync) architectures(capabilities gardencore.Capabilities) []string {
	return gardencore.GetCapabilitiesWithAppliedDefaults(capabilities, s.definitions)[v1beta1constants.ArchitectureName]
}
