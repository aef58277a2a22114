// Package namespacedcloudprofilevalidator contains the admission plugin NamespacedCloudProfileValidator, which checks
// that a NamespacedCloudProfile fits its parent and that both together are a valid profile. It also merges the two.
package namespacedcloudprofilevalidator

import (
	"context"
	"fmt"
	"reflect"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Factory creates the plugin.
var Factory = plugin.Factory{
	Name:       "NamespacedCloudProfileValidator",
	Operations: plugin.OnCreateOrUpdate,
	Validate:   plugin.ForKind(kind, validate),
}

var kind = gardencore.Kind("NamespacedCloudProfile")

func validate(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, profile,
	old *gardencore.NamespacedCloudProfile) error {
	if a.GetOperation() == admission.Update && unchanged(profile, old) {
		return nil
	}
	parent, err := plugin.Get[*gardencore.CloudProfile](ctx, deps.Reader, gardencore.Resource("cloudprofiles"), "", profile.Spec.Parent.Name)
	if apierrors.IsNotFound(err) {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.parent.name: there is no CloudProfile %q", profile.Spec.Parent.Name))
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading the parent CloudProfile %q: %w", profile.Spec.Parent.Name, err))
	}
	fit := fit{
		profile:  ConvertToParentFormat(&profile.Spec, parent.Spec.MachineCapabilities),
		old:      ConvertToParentFormat(&old.Spec, parent.Spec.MachineCapabilities),
		merged:   &old.Status.CloudProfileSpec,
		parent:   &parent.Spec,
		isUpdate: a.GetOperation() == admission.Update,
		now:      deps.Clock.Now(),
	}
	for _, validate := range []func() field.ErrorList{fit.validateKubernetes, fit.validateImages, fit.validateMerged} {
		if errs := validate(); len(errs) > 0 {
			return apierrors.NewInvalid(kind, profile.Name, errs)
		}
	}
	return nil
}

// unchanged reports whether an update needs no validation because the spec is unchanged. If only metadata changes, the
// profile is validated nevertheless, because its parent may have changed in the meantime, unless it is being deleted.
func unchanged(profile, old *gardencore.NamespacedCloudProfile) bool {
	return reflect.DeepEqual(profile.Spec, old.Spec) &&
		(profile.DeletionTimestamp != nil || reflect.DeepEqual(profile.ObjectMeta, old.ObjectMeta))
}

// fit is a NamespacedCloudProfile, in the format of its parent, together with what it is validated against.
type fit struct {
	profile  *gardencore.NamespacedCloudProfileSpec
	old      *gardencore.NamespacedCloudProfileSpec // empty for a new profile
	merged   *gardencore.CloudProfileSpec           // old, merged with its parent
	parent   *gardencore.CloudProfileSpec
	isUpdate bool
	now      time.Time
}

// validateKubernetes checks that the parent has the versions and that they have an expiration date.
func (f *fit) validateKubernetes() field.ErrorList {
	if f.profile.Kubernetes == nil {
		return nil
	}
	var errs field.ErrorList
	for i, version := range f.profile.Kubernetes.Versions {
		path := field.NewPath("spec", "kubernetes", "versions").Index(i)
		if cloudprofile.KubernetesVersion(f.parent.Kubernetes.Versions, version.Version) == nil {
			errs = append(errs, field.Invalid(path.Child("version"), version.Version, "must be a version of the parent CloudProfile"))
		}
		errs = append(errs, validation.RequiredIf(version.ExpirationDate == nil, path.Child("expirationDate"),
			"is all that can be said about a version here")...)
		before := cloudprofile.KubernetesVersion(f.merged.Kubernetes.Versions, version.Version)
		errs = append(errs, f.validateExpiration(version, before, path)...)
	}
	return errs
}

// validateExpiration refuses to change an expiration date to one in the past.
func (f *fit) validateExpiration(version gardencore.ExpirableVersion, holds *gardencore.ExpirableVersion,
	path *field.Path) field.ErrorList {
	if !f.isUpdate || !cloudprofile.Expired(version, f.now) || holds != nil && holds.ExpirationDate.Equal(version.ExpirationDate) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("expirationDate"), version.ExpirationDate,
		fmt.Sprintf("expiration date for version %q is in the past", version.Version))}
}

func (f *fit) validateMerged() field.ErrorList {
	return validation.ValidateNamespacedCloudProfileStatus(Merge(f.profile, f.parent), field.NewPath("status", "cloudProfileSpec"))
}
