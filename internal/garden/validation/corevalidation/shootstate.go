package corevalidation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateShootState checks a new shoot state.
func ValidateShootState(state *gardencore.ShootState) field.ErrorList {
	spec, path := &state.Spec, field.NewPath("spec")
	errs := apivalidation.ValidateObjectMeta(&state.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	for i, data := range spec.Gardener {
		errs = append(errs, notEmpty(path.Child("gardener").Index(i).Child("name"), data.Name)...)
	}
	for i, extension := range spec.Extensions {
		idxPath := path.Child("extensions").Index(i)
		errs = append(errs, notEmpty(idxPath.Child("kind"), extension.Kind)...)
		if extension.Purpose != nil {
			errs = append(errs, notEmpty(idxPath.Child("purpose"), *extension.Purpose)...)
		}
		// As in Gardener, errors about an extension's resources have the path of the shoot state's resources.
		errs = append(errs, ValidateResources(extension.Resources, path.Child("resources"), false)...)
	}
	for i, resource := range spec.Resources {
		errs = append(errs, validateCrossVersionObjectReference(resource.CrossVersionObjectReference, path.Child("resources").Index(i), false)...)
	}
	return errs
}

// ValidateShootStateUpdate checks a changed shoot state. Everything in its specification may change.
func ValidateShootStateUpdate(newState, oldState *gardencore.ShootState) field.ErrorList {
	return append(
		apivalidation.ValidateObjectMetaUpdate(&newState.ObjectMeta, &oldState.ObjectMeta, field.NewPath("metadata")),
		ValidateShootState(newState)...,
	)
}
