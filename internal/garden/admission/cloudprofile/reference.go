// Package cloudprofile reads what a Shoot's CloudProfile or NamespacedCloudProfile offers, and completes what the user
// left open: Kubernetes versions, machine images, architectures. Functions that depend on the lifecycle of a version
// take the current time as an argument.
//
// It may import the plugin package, shootcommon and the validation helpers. It does not change its arguments.
package cloudprofile

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

const (
	kindGlobal     = v1beta1constants.CloudProfileReferenceKindCloudProfile
	kindNamespaced = v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile
)

// Reference returns the reference to the profile of a Shoot, with its kind set, and the path of the field that contains
// it. Both are nil if the Shoot has no such reference.
func Reference(shoot *gardencore.Shoot) (*gardencore.CloudProfileReference, *field.Path) {
	spec := field.NewPath("spec")
	if ref := shoot.Spec.CloudProfile; ref != nil {
		kind := ref.Kind
		if kind == "" {
			kind = kindGlobal
		}
		return &gardencore.CloudProfileReference{Kind: kind, Name: ref.Name}, spec.Child("cloudProfile")
	}
	if name := ptr.Deref(shoot.Spec.CloudProfileName, ""); name != "" {
		return &gardencore.CloudProfileReference{Kind: kindGlobal, Name: name}, spec.Child("cloudProfileName")
	}
	return nil, nil
}

// Spec returns the spec of the profile that a Shoot refers to: for a NamespacedCloudProfile, this is the merged spec in
// its status. It returns nil if the Shoot refers to none. Errors about the reference are field errors.
func Spec(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (*gardencore.CloudProfileSpec, error) {
	ref, path := Reference(shoot)
	if ref == nil {
		return nil, nil
	}
	switch ref.Kind {
	case kindNamespaced:
		profile, err := namespaced(ctx, r, ref.Name, shoot.Namespace, path.Child("name"))
		if err != nil {
			return nil, err
		}
		return &profile.Status.CloudProfileSpec, nil
	case kindGlobal:
		if shoot.Spec.CloudProfile != nil {
			path = path.Child("name")
		}
		profile, err := shootcommon.Get[*gardencore.CloudProfile](ctx, r, gardencore.Resource("cloudprofiles"), "", ref.Name, path)
		if err != nil {
			return nil, err
		}
		return &profile.Spec, nil
	}
	return nil, unknownKind(ref, path)
}

func namespaced(ctx context.Context, r plugin.Reader, name, namespace string, path *field.Path) (
	*gardencore.NamespacedCloudProfile, error) {
	return shootcommon.Get[*gardencore.NamespacedCloudProfile](ctx, r, gardencore.Resource("namespacedcloudprofiles"), namespace, name, path)
}

func unknownKind(ref *gardencore.CloudProfileReference, path *field.Path) *field.Error {
	return field.NotSupported(path.Child("kind"), ref.Kind, []string{kindGlobal, kindNamespaced})
}

// ValidateChange refuses to change the profile of a Shoot if the two profiles do not derive from the same CloudProfile,
// or if the new one lacks a machine image version, machine type or volume type that a worker pool uses. Kubernetes
// versions are not checked: the next maintenance updates the Shoot to a version that is offered.
func ValidateChange(ctx context.Context, r plugin.Reader, shoot, old *gardencore.Shoot) error {
	from, _ := Reference(old)
	to, path := Reference(shoot)
	if from == nil || to == nil || *from == *to {
		return nil
	}
	toRoot, err := root(ctx, r, to, shoot.Namespace, path)
	if err != nil {
		return err
	}
	fromRoot, err := root(ctx, r, from, old.Namespace, path)
	if err != nil {
		return err
	}
	if toRoot != fromRoot {
		return field.Forbidden(path,
			fmt.Sprintf("must stay with CloudProfile %q or one of its NamespacedCloudProfiles; %s %q belongs to CloudProfile %q",
				fromRoot, to.Kind, to.Name, toRoot))
	}
	newSpec, err := Spec(ctx, r, shoot)
	if err != nil {
		return err
	}
	oldSpec, err := Spec(ctx, r, old)
	if err != nil {
		return err
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if missing := missingFor(worker, newSpec, oldSpec); missing != "" {
			return field.Forbidden(path, fmt.Sprintf("%s %q does not offer the %s that worker pool %q uses", to.Kind, to.Name, missing, worker.Name))
		}
	}
	return nil
}

// root returns the name of the CloudProfile that a profile derives from, which may be the profile itself.
func root(ctx context.Context, r plugin.Reader, ref *gardencore.CloudProfileReference, namespace string, path *field.Path) (string, error) {
	if ref.Kind == kindGlobal {
		return ref.Name, nil
	}
	if ref.Kind != kindNamespaced {
		return "", unknownKind(ref, path)
	}
	profile, err := namespaced(ctx, r, ref.Name, namespace, path.Child("name"))
	if err != nil {
		return "", err
	}
	// Validation ensures that the parent is a CloudProfile.
	return profile.Spec.Parent.Name, nil
}

// missingFor describes the first thing that a worker pool uses and the new profile lacks, and returns "" if there is
// none.
func missingFor(worker *gardencore.Worker, newSpec, oldSpec *gardencore.CloudProfileSpec) string {
	if image := worker.Machine.Image; image != nil {
		had := ImageVersion(oldSpec.MachineImages, image.Name, image.Version) != nil
		if had && ImageVersion(newSpec.MachineImages, image.Name, image.Version) == nil {
			return fmt.Sprintf("machine image version %s@%s", image.Name, image.Version)
		}
	}
	if MachineType(newSpec.MachineTypes, worker.Machine.Type) == nil {
		return fmt.Sprintf("machine type %q", worker.Machine.Type)
	}
	if worker.Volume != nil && worker.Volume.Type != nil && VolumeType(newSpec.VolumeTypes, *worker.Volume.Type) == nil {
		return fmt.Sprintf("volume type %q", *worker.Volume.Type)
	}
	return ""
}
