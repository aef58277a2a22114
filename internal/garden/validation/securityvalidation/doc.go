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
)

// validateType checks that value is a single type of a provider or target system, not a list.
func validateType(value string, path *field.Path) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "must be set")}
	case strings.Contains(value, ","):
		return field.ErrorList{field.Invalid(path, value, "must be a single type, not a list")}
	}
	return nil
}
