package shootvalidator

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateMachine checks that the CloudProfile offers a pool's machine type and image and that they are compatible. It
// returns only the first error, because further ones could be caused by it.
func (p pool) validateMachine() *field.Error {
	if a := p.worker.Machine.Architecture; a != nil && !slices.Contains(v1beta1constants.ValidArchitectures, *a) {
		return field.NotSupported(p.path.Child("machine", "architecture"), *a, v1beta1constants.ValidArchitectures)
	}
	if err := p.validateMachineType(); err != nil {
		return err
	}
	if err := p.validateImage(); err != nil {
		return err
	}
	return p.validateCapabilities()
}

func (p pool) architecture() string { return ptr.Deref(p.worker.Machine.Architecture, "") }

func (p pool) architectureChanges() bool {
	return !ptr.Equal(p.worker.Machine.Architecture, p.old.Machine.Architecture)
}

func (p pool) validateMachineType() *field.Error {
	name, path := p.worker.Machine.Type, p.path.Child("machine", "type")
	if name == p.old.Machine.Type && !p.architectureChanges() {
		return nil
	}
	reasons := func(t *gardencore.MachineType) []string {
		reasons := p.unavailable(t.Name, t.Usable, func(zone gardencore.AvailabilityZone) []string { return zone.UnavailableMachineTypes })
		if t.GetArchitecture(p.profile.MachineCapabilities) != p.architecture() {
			reasons = append(reasons, fmt.Sprintf("is not of architecture %q", p.architecture()))
		}
		return reasons
	}
	var offered []string
	for i := range p.profile.MachineTypes {
		if t := &p.profile.MachineTypes[i]; len(reasons(t)) == 0 {
			offered = append(offered, t.Name)
		}
	}
	found := cloudprofile.MachineType(p.profile.MachineTypes, name)
	if found == nil {
		return field.NotSupported(path, name, offered)
	}
	return invalidOffer(path, name, reasons(found), offered)
}

// validateImage checks that the CloudProfile offers the pool's machine image, if the image or the architecture has
// changed.
func (p pool) validateImage() *field.Error {
	image := p.worker.Machine.Image
	if equality.Semantic.DeepEqual(image, p.old.Machine.Image) && !p.architectureChanges() {
		return nil
	}
	var offered []string
	var found *gardencore.MachineImageVersion
	for i := range p.profile.MachineImages {
		candidate := &p.profile.MachineImages[i]
		if image != nil && image.Name != candidate.Name {
			continue
		}
		for j := range candidate.Versions {
			version := &candidate.Versions[j]
			if len(p.unsuitableImage(version)) == 0 {
				offered = append(offered, candidate.Name+":"+version.Version)
			}
			if image != nil && version.Version == image.Version {
				found = version
			}
		}
	}
	if found == nil || image.Version == "" {
		return field.NotSupported(p.path.Child("machine", "image", "version"), ptr.Deref(image, gardencore.ShootMachineImage{}).Version, offered)
	}
	return invalidOffer(p.path.Child("machine", "image"), image, p.unsuitableImage(found), offered)
}

// unsuitableImage returns the reasons for which the pool cannot use an image version.
func (p pool) unsuitableImage(version *gardencore.MachineImageVersion) []string {
	var reasons []string
	if !cloudprofile.SupportsArchitecture(version, p.architecture(), p.profile.MachineCapabilities) {
		reasons = append(reasons, fmt.Sprintf("does not run on architecture %q", p.architecture()))
	}
	if !p.isActive(version) {
		reasons = append(reasons, "is expired or not available yet")
	}
	if validation.UpdatesInPlace(p.worker.UpdateStrategy) && !p.canUpdateInPlace(version) {
		reasons = append(reasons, "cannot be reached with updates in place")
	}
	return reasons
}

// keepsPool reports whether the request updates an existing pool with an image.
func (p pool) keepsPool() bool {
	return p.GetOperation() == admission.Update && !p.isNew && p.old.Machine.Image != nil
}

// isActive reports whether the pool may start to use an image version. An expired version is allowed only for an update
// to it: it may be a required step to a later version.
func (p pool) isActive(version *gardencore.MachineImageVersion) bool {
	return validation.Active(version.ExpirableVersion, p.now) || p.keepsPool() &&
		cloudprofile.Expired(version.ExpirableVersion, p.now) && !cloudprofile.Compare(version.Version, "<", p.old.Machine.Image.Version)
}

// canUpdateInPlace reports whether nodes with the pool's old image can be updated in place to an image version. For a
// new pool, it reports whether nodes with this version can be updated in place later.
func (p pool) canUpdateInPlace(version *gardencore.MachineImageVersion) bool {
	if !cloudprofile.UpdatableInPlace(version) {
		return false
	}
	if p.isNew {
		return true
	}
	from := version.InPlaceUpdates.MinVersionForUpdate
	return p.keepsPool() && from != nil && cloudprofile.Compare(*from, "<=", p.old.Machine.Image.Version)
}

// validateCapabilities checks that the image supports the capabilities of the machine type.
func (p pool) validateCapabilities() *field.Error {
	if len(p.profile.MachineCapabilities) == 0 {
		return nil
	}
	machine, path := p.worker.Machine, p.path.Child("machine")
	machineType := cloudprofile.MachineType(p.profile.MachineTypes, machine.Type)
	if machineType == nil || machine.Image == nil {
		return p.validateUnchangedPool(machineType == nil)
	}
	version := cloudprofile.ImageVersion(p.profile.MachineImages, machine.Image.Name, machine.Image.Version)
	if version == nil || cloudprofile.Supports(version, machineType.Capabilities, p.profile.MachineCapabilities) {
		return nil
	}
	return field.Invalid(path.Child("image", "version"), machine.Image.Version,
		fmt.Sprintf("machine image %s has no flavor for machine type %q", machine.Image.Name, machine.Type))
}

// validateUnchangedPool returns the error for an unchanged pool whose machine type the CloudProfile does not have any
// more (withoutType), or which has no image. It returns nil for a Shoot that is being deleted, so that its
// finalizers can be removed.
func (p pool) validateUnchangedPool(withoutType bool) *field.Error {
	switch {
	case p.shoot.DeletionTimestamp != nil:
		return nil
	case withoutType:
		return field.NotSupported(p.path.Child("machine", "type"), p.worker.Machine.Type,
			names(p.profile.MachineTypes, func(t gardencore.MachineType) string { return t.Name }))
	}
	return field.Required(p.path.Child("machine", "image"), "the pool must have a machine image")
}

// validateKubeletVersion checks that the pool's machine image supports the version of the kubelet.
func (p pool) validateKubeletVersion(kubelet *semver.Version) field.ErrorList {
	image := p.worker.Machine.Image
	if image == nil {
		return nil
	}
	version := cloudprofile.ImageVersion(p.profile.MachineImages, image.Name, image.Version)
	if version == nil || version.KubeletVersionConstraint == nil {
		return nil
	}
	constraint, err := semver.NewConstraint(*version.KubeletVersionConstraint)
	if err == nil && constraint.Check(kubelet) {
		return nil
	}
	return field.ErrorList{field.Invalid(p.path.Child("machine", "image"), image,
		fmt.Sprintf("machine image %s@%s runs kubelets of version %s, not %s", image.Name, image.Version,
			*version.KubeletVersionConstraint, kubelet))}
}
