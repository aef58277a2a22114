package securityvalidation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
)

// The limits of the requested validity of a token, in seconds.
const (
	minTokenExpiration = 10 * 60
	maxTokenExpiration = 1 << 32
)

// ValidateTokenRequest checks a request for a token of a workload identity.
func ValidateTokenRequest(request *gardensecurity.TokenRequest) field.ErrorList {
	var (
		errs field.ErrorList
		spec = field.NewPath("spec")
	)
	if seconds := request.Spec.ExpirationSeconds; seconds < minTokenExpiration || seconds > maxTokenExpiration {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), seconds,
			fmt.Sprintf("must be from %d to %d", minTokenExpiration, int64(maxTokenExpiration))))
	}
	if object := request.Spec.ContextObject; object != nil {
		errs = append(errs, validateContextObject(object, spec.Child("contextObject"))...)
	}
	return errs
}

// validateContextObject checks that the reference is complete. Only the namespace may be missing, for a
// cluster-scoped object.
func validateContextObject(object *gardensecurity.ContextObject, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(object.APIVersion, path.Child("apiVersion")),
		required(object.Kind, path.Child("kind")),
		requiredSubdomain(object.Name, path.Child("name")),
	)
	if object.Namespace != nil {
		errs = append(errs, requiredSubdomain(*object.Namespace, path.Child("namespace"))...)
	}
	return errs
}

func required(value string, path *field.Path) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, "must not be empty")}
}

// requiredSubdomain refuses a name that is not a DNS subdomain. As in Gardener, an empty name is reported as both
// missing and invalid.
func requiredSubdomain(name string, path *field.Path) field.ErrorList {
	errs := required(name, path)
	for _, message := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}
