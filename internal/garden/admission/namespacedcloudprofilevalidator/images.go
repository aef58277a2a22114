package namespacedcloudprofilevalidator

import (
	"reflect"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateImages checks that images and versions that the parent does not have are complete, and that those that it has
// are not changed except for their expiration date.
func (f *fit) validateImages() field.ErrorList {
	var (
		errs         field.ErrorList
		path         = field.NewPath("spec", "machineImages")
		capabilities = validation.CapabilitiesOf(f.parent.MachineCapabilities)
		general      = validation.ValidateMachineImages(f.profile.MachineImages, capabilities, path, false)
	)
	for i, image := range f.profile.MachineImages {
		imagePath := path.Index(i)
		if !slices.ContainsFunc(f.parent.MachineImages, func(i gardencore.MachineImage) bool { return i.Name == image.Name }) {
			errs = append(errs, below(imagePath, general)...)
			for j, version := range image.Versions {
				errs = append(errs, validation.ValidateMachineImageAdditionalConfig(
					version, image, capabilities, imagePath.Child("versions").Index(j))...)
			}
			continue
		}
		errs = append(errs, f.validateUpdateStrategy(image, imagePath)...)
		for j, version := range image.Versions {
			versionPath := imagePath.Child("versions").Index(j)
			if cloudprofile.ImageVersion(f.parent.MachineImages, image.Name, version.Version) == nil {
				errs = append(errs, below(versionPath, general)...)
			} else {
				errs = append(errs, f.validateOverride(image.Name, version, versionPath)...)
			}
		}
	}
	return errs
}

// below returns the errors for the field at path and the fields below it, without Duplicate errors: the API validation
// has already refused duplicates.
func below(path *field.Path, errs field.ErrorList) field.ErrorList {
	var found field.ErrorList
	for _, err := range errs {
		if strings.HasPrefix(err.Field, path.String()) && err.Type != field.ErrorTypeDuplicate {
			found = append(found, err)
		}
	}
	return found
}

// validateUpdateStrategy refuses to change the update strategy of an image that the parent has got, too, in the
// meantime.
func (f *fit) validateUpdateStrategy(image gardencore.MachineImage, path *field.Path) field.ErrorList {
	for _, before := range f.old.MachineImages {
		if before.Name == image.Name && ptr.Deref(before.UpdateStrategy, "") != ptr.Deref(image.UpdateStrategy, "") {
			return field.ErrorList{
				field.Forbidden(path.Child("updateStrategy"), "must not change now that the parent CloudProfile has the image, too")}
		}
	}
	return nil
}

// validateOverride checks an image version that the parent has, too. If the profile had the version before the parent
// got it, it may stay unchanged except for its expiration date.
func (f *fit) validateOverride(image string, version gardencore.MachineImageVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if before := cloudprofile.ImageVersion(f.old.MachineImages, image, version.Version); before == nil {
		errs = validateOnlyExpiration(version, path)
	} else {
		same := *before
		same.ExpirationDate = version.ExpirationDate
		errs = append(errs, validation.ForbiddenIf(!reflect.DeepEqual(same, version), path,
			"must not change, but for the expiration date, now that the parent CloudProfile has the version, too")...)
	}
	var holds *gardencore.ExpirableVersion
	if merged := cloudprofile.ImageVersion(f.merged.MachineImages, image, version.Version); merged != nil {
		holds = &merged.ExpirableVersion
	}
	return append(errs, f.validateExpiration(version.ExpirableVersion, holds, path)...)
}

func validateOnlyExpiration(version gardencore.MachineImageVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, other := range []struct {
		name string
		set  bool
	}{
		{"classification", ptr.Deref(version.Classification, "") != ""},
		{"cri", len(version.CRI) > 0},
		{"architectures", len(version.Architectures) > 0},
		{"capabilityFlavors", len(version.CapabilityFlavors) > 0},
		{"kubeletVersionConstraint", ptr.Deref(version.KubeletVersionConstraint, "") != ""},
		{"inPlaceUpdates", version.InPlaceUpdates != nil},
	} {
		errs = append(errs, validation.ForbiddenIf(other.set, path.Child(other.name),
			"must not be set: the version is the parent CloudProfile's")...)
	}
	return append(errs, validation.InvalidIf(version.ExpirationDate == nil, path.Child("expirationDate"), nil,
		"must be set: it is all that can be said about the parent CloudProfile's version")...)
}
