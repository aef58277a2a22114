package authorizer

import (
	"crypto/sha256"
	"strings"
)

// pattern is a name that may end with something of who is asking: "seed-<seed>".
type pattern struct {
	text   string // as it is in the table; "" is any name
	prefix string
	ending ending
}

type ending uint8

const (
	nothing ending = iota
	seedName
	tokenID
)

const (
	seedHole    = "<seed>"
	tokenIDHole = "<token-id>"
	// tokenIDBytes of the hash are the ID of a bootstrap token, in hexadecimal digits.
	tokenIDBytes = 3
	// tokenIDPrefix goes before the seed's name into the hash: the namespace of what the token is for, and "--".
	tokenIDPrefix = "garden--"
)

func parsePattern(text string) pattern {
	if prefix, found := strings.CutSuffix(text, seedHole); found {
		return pattern{text, prefix, seedName}
	}
	if prefix, found := strings.CutSuffix(text, tokenIDHole); found {
		return pattern{text, prefix, tokenID}
	}
	return pattern{text, text, nothing}
}

// matches says whether s is what the pattern is for that seed.
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
		id := tokenIDOf(seed)
		return rest == string(id[:])
	default:
		return rest == ""
	}
}

// of returns the name that the pattern is for that seed.
func (p pattern) of(seed string) string {
	switch p.ending {
	case seedName:
		return p.prefix + seed
	case tokenID:
		id := tokenIDOf(seed)
		return p.prefix + string(id[:])
	default:
		return p.text
	}
}

// tokenIDOf is the ID of the bootstrap token of a seed's gardenlet. It stays on the stack for every name that an
// object can have.
func tokenIDOf(seed string) (id [2 * tokenIDBytes]byte) {
	const digits = "0123456789abcdef"
	var buffer [264]byte
	sum := sha256.Sum256(append(append(buffer[:0], tokenIDPrefix...), seed...))
	for i, b := range sum[:tokenIDBytes] {
		id[2*i], id[2*i+1] = digits[b>>4], digits[b&15]
	}
	return id
}
