package resourcereferencemanager

import (
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// capabilitySet has the values of each capability.
type capabilitySet map[string]sets.Set[string]

func capabilities(definitions []gardencore.CapabilityDefinition) capabilitySet {
	found := capabilitySet{}
	for _, definition := range definitions {
		found[definition.Name] = sets.New(definition.Values...)
	}
	return found
}

// without returns the values of s that other does not have.
func (s capabilitySet) without(other capabilitySet) capabilitySet {
	missing := capabilitySet{}
	for name, values := range s {
		if rest := values.Difference(other[name]); rest.Len() > 0 {
			missing[name] = rest
		}
	}
	return missing
}

// guarded returns the removed capabilities that must not be used by NamespacedCloudProfiles. It returns nil if they use
// no other capability than the architecture: architectures can be expressed without capabilities, so the profile may
// stop defining them.
func (u *profileUsers) guarded(removed capabilitySet) capabilitySet {
	others := slices.ContainsFunc(u.profiles, func(user *gardencore.NamespacedCloudProfile) bool {
		return slices.ContainsFunc(capabilitiesOf(user), func(capabilities gardencore.Capabilities) bool {
			for name := range capabilities {
				if name != v1beta1constants.ArchitectureName {
					return true
				}
			}
			return false
		})
	})
	if !others {
		return nil
	}
	return removed
}

// capabilitiesOf returns the capabilities of the images and machines that a NamespacedCloudProfile itself defines.
func capabilitiesOf(profile *gardencore.NamespacedCloudProfile) (all []gardencore.Capabilities) {
	for _, image := range profile.Spec.MachineImages {
		for _, version := range image.Versions {
			for _, flavor := range version.CapabilityFlavors {
				all = append(all, flavor.Capabilities)
			}
		}
	}
	for _, machine := range profile.Spec.MachineTypes {
		all = append(all, machine.Capabilities)
	}
	return all
}

func keepsCapabilities(name string, user *gardencore.NamespacedCloudProfile, removed capabilitySet) (errs field.ErrorList) {
	used := capabilitySet{}
	for _, capabilities := range capabilitiesOf(user) {
		for capability, values := range capabilities {
			if inUse := removed[capability].Intersection(sets.New(values...)); inUse.Len() > 0 {
				used[capability] = inUse.Union(used[capability])
			}
		}
	}
	for capability, values := range used {
		errs = append(errs, inUse(capabilitiesPath, fmt.Sprintf("%s=%v", capability, sets.List(values)), name))
	}
	return errs
}
