package authorizer

import (
	"slices"
	"strings"
)

// Verbs is a set of request verbs.
type Verbs uint16

// EveryVerb contains every verb, also those that are not in verbNames (impersonate, or * in an access review). The
// table has it as "every".
const EveryVerb Verbs = 1 << 15

const every = "every"

// verbNames are the verbs of the API, in the order of their bits, which is also the order in texts.
var verbNames = [...]string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection", "bind"}

// AllVerbs returns the verbs that a rule can have.
func AllVerbs() []string { return slices.Clone(verbNames[:]) }

// verb returns the set with that verb, the empty set if the verb is not in verbNames. It is case-sensitive.
func verb(name string) Verbs {
	if i := slices.Index(verbNames[:], name); i >= 0 {
		return 1 << i
	}
	return 0
}

// parseVerbs parses verbs that are separated by spaces. It ignores unknown words.
func parseVerbs(s string) (set Verbs) {
	for _, word := range strings.Fields(s) {
		if word == every {
			set |= EveryVerb
		}
		set |= verb(word)
	}
	return set
}

// Has reports whether the verb is in the set.
func (v Verbs) Has(name string) bool { return v&verb(name) != 0 || v&EveryVerb != 0 && isVerb(name) }

// isVerb reports whether s can be a verb of the API: lower case, as in "impersonate-on:serviceaccount:get", or the star
// for all verbs in an access review.
func isVerb(s string) bool {
	if s == "" || len(s) > maxNameLength {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '-' && c != ':' {
			return s == "*"
		}
	}
	return true
}

// List returns the names of the verbs; for EveryVerb, those in verbNames.
func (v Verbs) List() []string {
	if v&EveryVerb != 0 {
		return AllVerbs()
	}
	return slices.DeleteFunc(AllVerbs(), func(name string) bool { return v&verb(name) == 0 })
}

// String returns the verbs as in the table, "every" for EveryVerb.
func (v Verbs) String() string {
	if v&EveryVerb != 0 {
		return every
	}
	return strings.Join(v.List(), " ")
}

// MarshalText implements encoding.TextMarshaler.
func (v Verbs) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
