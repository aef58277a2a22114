// Package securityvalidation validates the objects of the API group security.gardener.cloud
// in their internal version, a file per resource.
//
// The functions are pure and never panic; error types and field paths are those of
// Gardener's own API server. The package may import the Gardener API types,
// Kubernetes' API machinery and the validation of the core group, nothing else of
// this module.
package securityvalidation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateType wants one type of provider or target system; lists are refused.
func validateType(value string, path *field.Path) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "must be set")}
	case strings.Contains(value, ","):
		return field.ErrorList{field.Invalid(path, value, "must be a single type, not a list")}
	}
	return nil
}
