package core

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func cloudProfiles(clock clock.PassiveClock) resource.Definition[*gardencore.CloudProfile] {
	return resource.Definition[*gardencore.CloudProfile]{
		Resource: gardencore.Resource("cloudprofiles"), Singular: "cloudprofile", ShortNames: []string{"cprofile", "cpfl"},
		Versions: v1beta1, AllowUnconditionalUpdate: true,
		New:                  func() *gardencore.CloudProfile { return &gardencore.CloudProfile{} },
		NewList:              func() runtime.Object { return &gardencore.CloudProfileList{} },
		CopySpec:             func(to, from *gardencore.CloudProfile) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.CloudProfile) { to.Status = from.Status },
		Validate:             validation.ValidateCloudProfile,
		ValidateUpdate:       validation.ValidateCloudProfileUpdate,
		ValidateStatusUpdate: validation.ValidateCloudProfileStatusUpdate,
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
