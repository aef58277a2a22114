package securityvalidation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"

	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// The limits of the requested validity of a token, in seconds.
const (
	minTokenExpiration = 10 * 60
	maxTokenExpiration = 1 << 32
)

// ValidateTokenRequest checks a request for a token of a workload identity.
func ValidateTokenRequest(request *gardensecurity.TokenRequest) field.ErrorList {
	spec, seconds := field.NewPath("spec"), request.Spec.ExpirationSeconds
	return append(
		corevalidation.InvalidIf(seconds < minTokenExpiration || seconds > maxTokenExpiration, spec.Child("expirationSeconds"), seconds,
			fmt.Sprintf("must be from %d to %d", minTokenExpiration, int64(maxTokenExpiration))),
		corevalidation.Optional(request.Spec.ContextObject, spec.Child("contextObject"), validateContextObject)...,
	)
}

// validateContextObject checks that the reference is complete. Only the namespace may be missing, for a
// cluster-scoped object.
func validateContextObject(object gardensecurity.ContextObject, path *field.Path) field.ErrorList {
	return slices.Concat(
		corevalidation.Required(path.Child("apiVersion"), object.APIVersion),
		corevalidation.Required(path.Child("kind"), object.Kind),
		requiredSubdomain(object.Name, path.Child("name")),
		corevalidation.Optional(object.Namespace, path.Child("namespace"), requiredSubdomain),
	)
}

// requiredSubdomain refuses a name that is not a DNS subdomain. As in Gardener, an empty name is reported as both
// missing and invalid.
func requiredSubdomain(name string, path *field.Path) field.ErrorList {
	return append(corevalidation.Required(path, name), corevalidation.ValidateDNS1123Subdomain(name, path)...)
}
