package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func namespacedCloudProfiles(clock clock.PassiveClock) resource.Definition[*gardencore.NamespacedCloudProfile] {
	return resource.Definition[*gardencore.NamespacedCloudProfile]{
		Resource: gardencore.Resource("namespacedcloudprofiles"), Singular: "namespacedcloudprofile",
		ShortNames: []string{"nsprofile", "nscpfl"}, Versions: v1beta1, Namespaced: true, AllowUnconditionalUpdate: true,
		New:                  func() *gardencore.NamespacedCloudProfile { return &gardencore.NamespacedCloudProfile{} },
		NewList:              func() runtime.Object { return &gardencore.NamespacedCloudProfileList{} },
		CopySpec:             func(to, from *gardencore.NamespacedCloudProfile) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.NamespacedCloudProfile) { to.Status = from.Status },
		Validate:             validation.ValidateNamespacedCloudProfile,
		ValidateUpdate:       validation.ValidateNamespacedCloudProfileUpdate,
		ValidateStatusUpdate: validation.ValidateNamespacedCloudProfileStatusUpdate,
		SpecChanged:          func(p, old *gardencore.NamespacedCloudProfile) bool { return !resource.Equal(old.Spec, p.Spec) },
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
