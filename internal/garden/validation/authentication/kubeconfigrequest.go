// Package authentication validates the objects of the API group authentication.gardener.cloud: AdminKubeconfigRequest
// and ViewerKubeconfigRequest, which are the same type in the internal version.
//
// The functions are pure and never panic; error types and field paths are the same as in Gardener's own API server.
// The package may import the Gardener API types and Kubernetes' API machinery, nothing else of this module.
package authentication

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardenauthentication "github.com/gardener/gardener/pkg/apis/authentication"
)

// The limits of the requested validity of a kubeconfig, in seconds. The handler may grant less.
const (
	minExpiration = 10 * 60
	maxExpiration = math.MaxUint32
)

// ValidateKubeconfigRequest checks a request for a kubeconfig of a shoot, for admins and for viewers alike.
func ValidateKubeconfigRequest(request *gardenauthentication.KubeconfigRequest) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	switch seconds := request.Spec.ExpirationSeconds; {
	case seconds < minExpiration:
		return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must be at least %d", minExpiration))}
	case seconds > maxExpiration:
		// Gardener also returns the error type TooLong, which is for texts.
		return field.ErrorList{{Type: field.ErrorTypeTooLong, Field: path.String(), BadValue: seconds,
			Detail: fmt.Sprintf("must be at most %d", int64(maxExpiration))}}
	}
	return nil
}
