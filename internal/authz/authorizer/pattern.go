package authorizer

import (
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// pattern is a name that may end with a placeholder for the seed of the user: "seed-<seed>".
type pattern struct {
	text   string // as in the table; "" matches any name
	prefix string
	ending ending
}

type ending uint8

const (
	nothing ending = iota
	seedName
	tokenID
	anyName
)

// placeholders has the text of each ending.
var placeholders = map[ending]string{seedName: "<seed>", tokenID: "<token-id>", anyName: "<name>"}

func parsePattern(text string) pattern {
	for ending, placeholder := range placeholders {
		if prefix, found := strings.CutSuffix(text, placeholder); found {
			return pattern{text, prefix, ending}
		}
	}
	return pattern{text, text, nothing}
}

// matches reports whether s matches the pattern for the seed.
func (p pattern) matches(s, seed string) bool {
	if p.text == "" {
		return true
	}
	rest, found := strings.CutPrefix(s, p.prefix)
	if !found {
		return false
	}
	switch p.ending {
	case seedName:
		return rest == seed
	case tokenID:
		id := bootstraprules.TokenID(constants.GardenNamespace, seed)
		return rest == string(id[:])
	case anyName:
		return rest != ""
	default:
		return rest == ""
	}
}

// of returns the pattern with the seed filled in.
func (p pattern) of(seed string) string {
	switch p.ending {
	case seedName:
		return p.prefix + seed
	case tokenID:
		id := bootstraprules.TokenID(constants.GardenNamespace, seed)
		return p.prefix + string(id[:])
	default:
		return p.text
	}
}
