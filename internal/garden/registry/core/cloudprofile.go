package core

import (
	"context"
	"slices"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func cloudProfiles(clock clock.PassiveClock) resource.Definition[*gardencore.CloudProfile] {
	return resource.Definition[*gardencore.CloudProfile]{
		Resource: gardencore.Resource("cloudprofiles"), Kind: "CloudProfile", ShortNames: []string{"cprofile", "cpfl"},
		Versions: v1beta1, AllowUnconditionalUpdate: true,
		CopySpec:       func(to, from *gardencore.CloudProfile) { to.Spec = from.Spec },
		CopyStatus:     func(to, from *gardencore.CloudProfile) { to.Status = from.Status },
		Validate:       validation.ValidateCloudProfile,
		ValidateUpdate: validation.ValidateCloudProfileUpdate,
		PrepareForCreate: func(_ context.Context, profile *gardencore.CloudProfile) {
			dropUnusableVersions(&profile.Spec, clock.Now())
		},
		PrepareForUpdate: func(_ context.Context, profile, old *gardencore.CloudProfile) {
			syncArchitectures(&profile.Spec, &old.Spec)
		},
		Canonicalize: func(profile *gardencore.CloudProfile) {
			syncArchitectures(&profile.Spec, &gardencore.CloudProfileSpec{})
		},
		Columns: []resource.Column[*gardencore.CloudProfile]{
			{Name: "Provider", Description: "The provider type.", Value: func(p *gardencore.CloudProfile) any { return p.Spec.Type }},
		},
	}
}

func namespacedCloudProfiles(clock clock.PassiveClock) resource.Definition[*gardencore.NamespacedCloudProfile] {
	return resource.Definition[*gardencore.NamespacedCloudProfile]{
		Resource: gardencore.Resource("namespacedcloudprofiles"), Kind: "NamespacedCloudProfile",
		ShortNames: []string{"nsprofile", "nscpfl"}, Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		CopySpec:       func(to, from *gardencore.NamespacedCloudProfile) { to.Spec = from.Spec },
		CopyStatus:     func(to, from *gardencore.NamespacedCloudProfile) { to.Status = from.Status },
		Validate:       validation.ValidateNamespacedCloudProfile,
		ValidateUpdate: validation.ValidateNamespacedCloudProfileUpdate,
		SpecChanged:    func(p, old *gardencore.NamespacedCloudProfile) bool { return !resource.Equal(old.Spec, p.Spec) },
		PrepareForCreate: func(_ context.Context, p *gardencore.NamespacedCloudProfile) {
			dropUnusableNamespacedVersions(&p.Spec, &gardencore.NamespacedCloudProfileSpec{}, clock.Now())
		},
		PrepareForUpdate: func(_ context.Context, p, old *gardencore.NamespacedCloudProfile) {
			dropUnusableNamespacedVersions(&p.Spec, &old.Spec, clock.Now())
		},
		Fields: func(p *gardencore.NamespacedCloudProfile) fields.Set {
			return fields.Set{gardencore.NamespacedCloudProfileParentRefName: p.Spec.Parent.Name}
		},
		Indexed: []string{gardencore.NamespacedCloudProfileParentRefName},
		Columns: []resource.Column[*gardencore.NamespacedCloudProfile]{
			{Name: "Parent Name", Description: "The profile that it is based on.",
				Value: func(p *gardencore.NamespacedCloudProfile) any { return p.Spec.Parent.Name }},
			{Name: "Parent Kind", Description: "The kind of the profile that it is based on.",
				Value: func(p *gardencore.NamespacedCloudProfile) any { return p.Spec.Parent.Kind }},
		},
	}
}

// dropUnusableVersions removes Kubernetes versions that cannot be used and expired machine image versions from a new
// CloudProfile.
func dropUnusableVersions(spec *gardencore.CloudProfileSpec, now time.Time) {
	spec.Kubernetes.Versions = deleteFunc(spec.Kubernetes.Versions, func(v gardencore.ExpirableVersion) bool {
		return !validation.Active(v, now)
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
			return !had && !validation.Active(v, now)
		})
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = deleteFunc(image.Versions, func(v gardencore.MachineImageVersion) bool {
			return !hasImageVersion(old.MachineImages, image.Name, v.Version) && !validation.Active(v.ExpirableVersion, now)
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

func hasImageVersion(images []gardencore.MachineImage, name, version string) bool {
	return slices.ContainsFunc(images, func(image gardencore.MachineImage) bool {
		return image.Name == name &&
			slices.ContainsFunc(image.Versions, func(v gardencore.MachineImageVersion) bool { return v.Version == version })
	})
}
