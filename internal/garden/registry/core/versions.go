package core

import (
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// kubernetesAtLeast reports whether a Kubernetes version is 1.<minor> or later. It returns false for an invalid
// version.
func kubernetesAtLeast(version string, minor uint64) bool {
	v, err := semver.NewVersion(version)
	return err == nil && (v.Major() > 1 || v.Major() == 1 && v.Minor() >= minor)
}

// active reports whether a version may be used: it is available already, and has not expired.
func active(version gardencore.ExpirableVersion, now time.Time) bool {
	classification := validation.ClassificationAt(version, now)
	return classification != gardencore.ClassificationExpired && classification != gardencore.ClassificationUnavailable
}

// dropUnusableVersions removes Kubernetes versions that cannot be used and expired machine image versions from a new
// CloudProfile.
func dropUnusableVersions(spec *gardencore.CloudProfileSpec, now time.Time) {
	spec.Kubernetes.Versions = deleteFunc(spec.Kubernetes.Versions, func(v gardencore.ExpirableVersion) bool {
		return !active(v, now)
	})
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = deleteFunc(image.Versions, func(v gardencore.MachineImageVersion) bool {
			return validation.ClassificationAt(v.ExpirableVersion, now) == gardencore.ClassificationExpired
		})
	}
}

// dropUnusableNamespacedVersions removes versions that cannot be used from a NamespacedCloudProfile, unless the old
// spec has them. It also removes images without versions, unless they set an update strategy.
func dropUnusableNamespacedVersions(spec, old *gardencore.NamespacedCloudProfileSpec, now time.Time) {
	if spec.Kubernetes != nil {
		spec.Kubernetes.Versions = deleteFunc(spec.Kubernetes.Versions, func(v gardencore.ExpirableVersion) bool {
			had := old.Kubernetes != nil &&
				slices.ContainsFunc(old.Kubernetes.Versions, func(o gardencore.ExpirableVersion) bool { return o.Version == v.Version })
			return !had && !active(v, now)
		})
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = deleteFunc(image.Versions, func(v gardencore.MachineImageVersion) bool {
			return findImageVersion(old.MachineImages, image.Name, v.Version) == nil && !active(v.ExpirableVersion, now)
		})
	}
	spec.MachineImages = deleteFunc(spec.MachineImages, func(image gardencore.MachineImage) bool {
		return len(image.Versions) == 0 && ptr.Deref(image.UpdateStrategy, "") == ""
	})
}

// deleteFunc returns nil instead of an empty list, so that objects without elements compare as equal.
func deleteFunc[T any](list []T, del func(T) bool) []T {
	if list = slices.DeleteFunc(list, del); len(list) == 0 {
		return nil
	}
	return list
}

// findImageVersion returns nil if the version does not exist. If several images or versions have the same name, the
// last one counts.
func findImageVersion(images []gardencore.MachineImage, name, version string) *gardencore.MachineImageVersion {
	for _, image := range slices.Backward(images) {
		if image.Name != name {
			continue
		}
		for i := range slices.Backward(image.Versions) {
			if image.Versions[i].Version == version {
				return &image.Versions[i]
			}
		}
		return nil
	}
	return nil
}
