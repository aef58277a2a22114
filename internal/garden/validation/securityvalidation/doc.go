// Package securityvalidation validates the objects of the API group security.gardener.cloud in their internal
// version, with a file for each resource.
//
// The functions are pure and never panic; error types and field paths are the same as in Gardener's own API server.
// The package may import the Gardener API types, Kubernetes' API machinery and the validation of the core group,
// nothing else of this module.
package securityvalidation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateType checks that value is a single type of a provider or target system, not a list.
func validateType(value string, path *field.Path) field.ErrorList {
	return append(
		corevalidation.RequiredIf(value == "", path, "must be set"),
		corevalidation.InvalidIf(strings.Contains(value, ","), path, value, "must be a single type, not a list")...,
	)
}
