package cloudprofile

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// CompleteImage returns the machine image of a worker pool with all fields set. The image of an existing pool is kept:
// it changes in maintenance only. Otherwise CompleteImage takes the image with the given name, or the first one that
// fits the pool's machines, in the latest version that matches the given part of the version. The old pool is nil for a
// new pool; path is the path of the pool, whose architecture must be set.
func CompleteImage(profile *gardencore.CloudProfileSpec, worker, old *gardencore.Worker, now time.Time, path *field.Path) (
	*gardencore.ShootMachineImage, *field.Error) {
	image := worker.Machine.Image
	if old != nil && old.Machine.Image != nil {
		had := old.Machine.Image
		if image == nil {
			return had.DeepCopy(), nil
		}
		if image.Name == had.Name && (image.Version == "" || image.Version == had.Version) {
			return &gardencore.ShootMachineImage{Name: had.Name, Version: had.Version, ProviderConfig: image.ProviderConfig}, nil
		}
	}
	pool := poolMachines{profile, MachineType(profile.MachineTypes, worker.Machine.Type),
		ptr.Deref(worker.Machine.Architecture, ""), validation.UpdatesInPlace(worker.UpdateStrategy)}
	return pool.image(image, now, path)
}

// poolMachines describes the machines of a worker pool as far as it matters for the choice of their image.
type poolMachines struct {
	profile      *gardencore.CloudProfileSpec
	machineType  *gardencore.MachineType // nil if the profile has no such machine type
	architecture string
	inPlace      bool
}

func (p poolMachines) image(wanted *gardencore.ShootMachineImage, now time.Time, path *field.Path) (
	*gardencore.ShootMachineImage, *field.Error) {
	reference := ""
	if wanted != nil {
		reference = wanted.Name + "@" + wanted.Version
	} else {
		wanted = &gardencore.ShootMachineImage{}
	}
	if len(p.profile.MachineImages) == 0 {
		return nil, field.Invalid(path, reference, "the cloud profile offers no machine image")
	}
	image, err := p.choose(wanted, reference, path)
	if err != nil {
		return nil, err
	}
	prefix, partErr := parsePrefix(strings.TrimPrefix(wanted.Version, "v"))
	named := wanted.Name != "" && ImageVersion(p.profile.MachineImages, image.Name, wanted.Version) != nil
	switch {
	case named:
		return wanted, nil
	case partErr != nil:
		return nil, field.Invalid(path, wanted.Version, fmt.Sprintf("%s must be a number, as in a semantic version", partErr.part))
	case prefix == nil:
		return wanted, nil // a complete version that the profile does not have: the validator refuses it
	}
	version := p.latest(image, prefix, now)
	if version == "" {
		return nil, field.Invalid(path, reference,
			fmt.Sprintf("machine image %q has no version for the machine type %q and its architecture %q that is like this",
				image.Name, ptr.Deref(p.machineType, gardencore.MachineType{}).Name, p.architecture))
	}
	return &gardencore.ShootMachineImage{Name: image.Name, Version: version, ProviderConfig: wanted.ProviderConfig}, nil
}

// choose returns the image with the wanted name or, if the name is empty, the first image with a version that fits the
// architecture or the capabilities of the machines. As in Gardener, one of the two is enough here.
func (p poolMachines) choose(wanted *gardencore.ShootMachineImage, reference string, path *field.Path) (
	*gardencore.MachineImage, *field.Error) {
	images := p.profile.MachineImages
	if wanted.Name != "" {
		if image := validation.Find(images, func(i *gardencore.MachineImage) bool { return i.Name == wanted.Name }); image != nil {
			return image, nil
		}
		return nil, field.Invalid(path, wanted.Name, "the cloud profile has no such machine image")
	}
	for i := range images {
		for j := range images[i].Versions {
			if version := &images[i].Versions[j]; p.hasArchitecture(version) || p.machineType != nil && p.hasCapabilities(version) {
				return &images[i], nil
			}
		}
	}
	return nil, field.Invalid(path, reference, fmt.Sprintf("the cloud profile has no machine image for the architecture %q", p.architecture))
}

func (p poolMachines) hasArchitecture(version *gardencore.MachineImageVersion) bool {
	return SupportsArchitecture(version, p.architecture, p.profile.MachineCapabilities)
}

// hasCapabilities returns true for an unknown machine type, for which the validator returns an error.
func (p poolMachines) hasCapabilities(version *gardencore.MachineImageVersion) bool {
	return p.machineType == nil || Supports(version, p.machineType.Capabilities, p.profile.MachineCapabilities)
}

// latest returns the greatest version that fits and is not in preview, and prefers versions that are not deprecated. As
// in Gardener it may return an expired version, which the validator then refuses. It returns "" if no version fits.
func (p poolMachines) latest(image *gardencore.MachineImage, prefix *versionPrefix, now time.Time) string {
	var latest, latestKept *semver.Version
	for i := range image.Versions {
		version := &image.Versions[i]
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || !prefix.matches(parsed) || !p.hasArchitecture(version) || !p.hasCapabilities(version) || p.inPlace &&
			!UpdatableInPlace(version) {
			continue
		}
		classification := validation.ClassificationAt(version.ExpirableVersion, now)
		if classification == gardencore.ClassificationPreview {
			continue
		}
		if latest == nil || parsed.GreaterThan(latest) {
			latest = parsed
		}
		if classification != gardencore.ClassificationDeprecated && (latestKept == nil || parsed.GreaterThan(latestKept)) {
			latestKept = parsed
		}
	}
	if latest = cmp.Or(latestKept, latest); latest == nil {
		return ""
	}
	return latest.Original()
}
