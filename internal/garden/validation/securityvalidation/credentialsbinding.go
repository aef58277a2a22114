package securityvalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"

	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// ValidateCredentialsBinding checks a credentials binding without comparing it to an old one.
func ValidateCredentialsBinding(binding *gardensecurity.CredentialsBinding) field.ErrorList {
	errs := slices.Concat(
		apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")),
		corevalidation.ValidateCredentialsRef(binding.CredentialsRef, field.NewPath("credentialsRef")),
		validateType(binding.Provider.Type, field.NewPath("provider", "type")),
	)
	for i, quota := range binding.Quotas {
		errs = append(errs, corevalidation.ValidateObjectReferenceNameAndNamespace(quota, field.NewPath("quotas").Index(i), false)...)
	}
	return errs
}

// ValidateCredentialsBindingUpdate checks a changed credentials binding. Only the metadata may change, because shoots
// depend on the rest.
func ValidateCredentialsBindingUpdate(newBinding, oldBinding *gardensecurity.CredentialsBinding) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newBinding.ObjectMeta, &oldBinding.ObjectMeta, field.NewPath("metadata")),
		apivalidation.ValidateImmutableField(newBinding.CredentialsRef, oldBinding.CredentialsRef, field.NewPath("credentialsRef")),
		apivalidation.ValidateImmutableField(newBinding.Quotas, oldBinding.Quotas, field.NewPath("quotas")),
		apivalidation.ValidateImmutableField(newBinding.Provider, oldBinding.Provider, field.NewPath("provider")),
		ValidateCredentialsBinding(newBinding),
	)
}
