package corevalidation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateSecretBinding checks a new secret binding.
func ValidateSecretBinding(binding *gardencore.SecretBinding) field.ErrorList {
	return append(validateSecretBinding(binding), validateSecretBindingProvider(binding.Provider)...)
}

func validateSecretBinding(binding *gardencore.SecretBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	secret := corev1.ObjectReference{Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}
	errs = append(errs, ValidateObjectReferenceNameAndNamespace(secret, field.NewPath("secretRef"), false)...)
	for i, quota := range binding.Quotas {
		errs = append(errs, ValidateObjectReferenceNameAndNamespace(quota, field.NewPath("quotas").Index(i), false)...)
	}
	return errs
}

// validateSecretBindingProvider checks that there is a provider type. It is called only for new bindings, because
// older bindings may have been created before the field existed.
func validateSecretBindingProvider(provider *gardencore.SecretBindingProvider) field.ErrorList {
	path := field.NewPath("provider")
	if provider == nil {
		return field.ErrorList{field.Required(path, "must not be empty")}
	}
	return Required(path.Child("type"), provider.Type)
}

// ValidateSecretBindingUpdate checks a changed secret binding: only the metadata may change, and a missing provider
// may be added.
func ValidateSecretBindingUpdate(newBinding, oldBinding *gardencore.SecretBinding) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newBinding.ObjectMeta, &oldBinding.ObjectMeta, field.NewPath("metadata")),
		immutable(newBinding.SecretRef, oldBinding.SecretRef, field.NewPath("secretRef")),
		immutable(newBinding.Quotas, oldBinding.Quotas, field.NewPath("quotas")),
		immutableOnceSet(newBinding.Provider, oldBinding.Provider, field.NewPath("provider")),
		validateSecretBinding(newBinding),
	)
}
