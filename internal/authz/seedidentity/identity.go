// Package seedidentity determines the seed for which a user acts: as its gardenlet, as an extension that runs on it, or
// for none.
//
// It guarantees that a user has an identity only if the user name and groups agree on one seed with a valid name; a
// malformed or ambiguous user has no identity (None). It reads names and groups only, is stateless, and allocates
// nothing. Condition, for an API server, is true for every user with an identity, and for hardly any other.
//
// It may import API types and constants, and nothing of the project.
package seedidentity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// NamespacePrefix is the prefix of the name of a seed's namespace in the garden: seed-<seed>.
const NamespacePrefix = "seed-"

// maxNameLength is the maximum length of an object name in the API.
const maxNameLength = 253

// Type is the role of a user for a seed.
type Type int

const (
	// None is every other user.
	None Type = iota
	// Gardenlet is the agent that is responsible for the seed.
	Gardenlet
	// Extension is a controller that runs on the seed and has a ServiceAccount in the garden's namespace seed-<seed>.
	Extension
)

// String returns the name of the type in lower case, for metrics and messages.
func (t Type) String() string {
	switch t {
	case Gardenlet:
		return "gardenlet"
	case Extension:
		return "extension"
	default:
		return "none"
	}
}

// Identity is the identity of a user. Seed is empty if and only if Type is None.
type Identity struct {
	Type Type
	Seed string
}

// String returns a text for messages, such as "gardenlet of seed local".
func (i Identity) String() string {
	switch i.Type {
	case Gardenlet:
		return "gardenlet of seed " + i.Seed
	case Extension:
		return "extension on seed " + i.Seed
	default:
		return "neither a gardenlet nor an extension on a seed"
	}
}

// OfUser returns the identity of an authenticated user; None for nil.
func OfUser(u user.Info) Identity {
	if u == nil {
		return Identity{}
	}
	return Of(u.GetName(), u.GetGroups())
}

// OfAuthentication returns the identity of the user as admission requests and token reviews carry it.
func OfAuthentication(u authenticationv1.UserInfo) Identity {
	return Of(u.Username, u.Groups)
}

// Of returns the identity of the user with that name and those groups.
//
// The group of gardenlets takes precedence: a member is a gardenlet or has no identity, whatever its other groups.
func Of(name string, groups []string) Identity {
	if slices.Contains(groups, constants.SeedsGroup) {
		return ofGardenlet(name)
	}
	if slices.Contains(groups, serviceaccount.AllServiceAccountsGroup) {
		return ofServiceAccount(name, groups)
	}
	return Identity{}
}

// ofGardenlet parses gardener.cloud:system:seed:<seed>. A gardenlet that does not know its seed yet uses the name
// <ambiguous>, which is no valid Seed name.
func ofGardenlet(name string) Identity {
	seed, found := strings.CutPrefix(name, constants.SeedUserNamePrefix)
	if !found || !isObjectName(seed) {
		return Identity{}
	}
	return Identity{Type: Gardenlet, Seed: seed}
}

// ofServiceAccount parses system:serviceaccount:seed-<seed>:extension-…. The groups must contain that of the namespace,
// and of no other namespace.
func ofServiceAccount(name string, groups []string) Identity {
	account, found := strings.CutPrefix(name, serviceaccount.ServiceAccountUsernamePrefix)
	if !found {
		return Identity{}
	}
	namespace, account, found := strings.Cut(account, serviceaccount.ServiceAccountUsernameSeparator)
	if !found || !inNamespaceGroupOnly(groups, namespace) {
		return Identity{}
	}
	seed, found := strings.CutPrefix(namespace, NamespacePrefix)
	if !found || !isObjectName(seed) {
		return Identity{}
	}
	extension, found := strings.CutPrefix(account, constants.ExtensionGardenServiceAccountPrefix)
	if !found || !isObjectName(extension) {
		return Identity{}
	}
	return Identity{Type: Extension, Seed: seed}
}

func inNamespaceGroupOnly(groups []string, namespace string) bool {
	member := false
	for _, group := range groups {
		of, found := strings.CutPrefix(group, serviceaccount.ServiceAccountGroupPrefix)
		if !found {
			continue
		}
		if of != namespace {
			return false
		}
		member = true
	}
	return member
}

// isObjectName reports whether s can be an object name, or the rest of one after a prefix: lower case letters, digits,
// '-' and '.', neither of the two at an end. That excludes colons, spaces, brackets and upper case.
func isObjectName(s string) bool {
	if s == "" || len(s) > maxNameLength {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case (c == '-' || c == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}

// Condition returns a CEL expression that is true for every user whose identity is not None, and false for nearly all
// others, so that an API server does not call the webhook for other users. The parameters are the fields with the
// user's name and groups; either may be absent.
func Condition(nameField, groupsField string) string {
	return fmt.Sprintf(`has(%[2]s) && (%[3]q in %[2]s || %[4]q in %[2]s && has(%[1]s) && %[1]s.startsWith(%[5]q))`,
		nameField, groupsField, constants.SeedsGroup, serviceaccount.AllServiceAccountsGroup,
		serviceaccount.ServiceAccountUsernamePrefix+NamespacePrefix)
}
