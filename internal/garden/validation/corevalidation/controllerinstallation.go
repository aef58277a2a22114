package corevalidation

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateControllerInstallation checks a new controller installation.
func ValidateControllerInstallation(installation *gardencore.ControllerInstallation) field.ErrorList {
	spec, path := &installation.Spec, field.NewPath("spec")
	errs := apivalidation.ValidateObjectMeta(&installation.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	errs = append(errs, Required(path.Child("registrationRef", "name"), spec.RegistrationRef.Name)...)
	errs = append(errs, ForbiddenIf(spec.SeedRef == nil && spec.ShootRef == nil, path.Child("seedRef"),
		"either this or shootRef must be set")...)
	if spec.SeedRef != nil {
		errs = append(errs, Required(path.Child("seedRef", "name"), spec.SeedRef.Name)...)
	}
	if spec.ShootRef != nil {
		errs = append(errs, Required(path.Child("shootRef", "name"), spec.ShootRef.Name)...)
		errs = append(errs, Required(path.Child("shootRef", "namespace"), spec.ShootRef.Namespace)...)
	}
	return errs
}

// ValidateControllerInstallationUpdate checks a changed controller installation: its registration and its seed or
// shoot must not change, and during deletion nothing in its specification.
func ValidateControllerInstallationUpdate(newInstallation, oldInstallation *gardencore.ControllerInstallation) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newInstallation.ObjectMeta, &oldInstallation.ObjectMeta, field.NewPath("metadata")),
		validateControllerInstallationSpecUpdate(newInstallation, oldInstallation, field.NewPath("spec")),
		ValidateControllerInstallation(newInstallation),
	)
}

func validateControllerInstallationSpecUpdate(newInstallation, oldInstallation *gardencore.ControllerInstallation,
	path *field.Path) field.ErrorList {
	newSpec, oldSpec := &newInstallation.Spec, &oldInstallation.Spec
	if newInstallation.DeletionTimestamp != nil && !apiequality.Semantic.DeepEqual(newSpec, oldSpec) {
		return forbiddenInDeletion(path)
	}
	errs := immutable(newSpec.RegistrationRef.Name, oldSpec.RegistrationRef.Name, path.Child("registrationRef", "name"))
	if newSpec.SeedRef != nil && oldSpec.SeedRef != nil {
		errs = append(errs, immutable(newSpec.SeedRef.Name, oldSpec.SeedRef.Name, path.Child("seedRef", "name"))...)
	}
	shootPath := path.Child("shootRef")
	if newSpec.ShootRef == nil || oldSpec.ShootRef == nil {
		return append(errs, immutable(newSpec.ShootRef, oldSpec.ShootRef, shootPath)...)
	}
	errs = append(errs, immutable(newSpec.ShootRef.Name, oldSpec.ShootRef.Name, shootPath.Child("name"))...)
	return append(errs, immutable(newSpec.ShootRef.Namespace, oldSpec.ShootRef.Namespace, shootPath.Child("namespace"))...)
}

func forbiddenInDeletion(path *field.Path) field.ErrorList {
	return field.ErrorList{field.Forbidden(path, "must not change while the object is being deleted")}
}
