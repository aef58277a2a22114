package authorizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Rule is a row of the table for one resource, for `gardenlite access matrix` and the documentation.
type Rule struct {
	Group    string `json:"group"` // API group, "" for the core group
	Resource string `json:"resource"`
	// Kind is the kind of the object's vertex. It has no meaning if the rule does not need the graph.
	Kind       graph.Kind `json:"-"`
	Namespaced bool       `json:"namespaced"`
	// Namespace and Name restrict the objects of the rule; "" stands for all. They may end with <seed>, the name of the
	// user's seed, or <token-id>, the ID of the bootstrap token of the seed's gardenlet.
	Namespace string `json:"inNamespace,omitempty"`
	Name      string `json:"named,omitempty"`

	Gardenlet Grant `json:"gardenlet"`
	Extension Grant `json:"extension"`
}

// Grant has the verbs that a rule grants. The zero value grants nothing.
type Grant struct {
	Free  Verbs `json:"free,omitempty"`  // allowed without the graph
	Graph Verbs `json:"graph,omitempty"` // allowed if the graph has a path from the object to the seed
	// Within are allowed if the graph has a path from the object's namespace to the seed. They are for objects that do
	// not exist yet.
	Within Verbs `json:"within,omitempty"`
	// Selected are allowed for all objects of the seed, with the selector.
	Selected Verbs    `json:"selected,omitempty"`
	Selector Selector `json:"selector,omitzero"`
	// Subresources are the subresources for which the verbs are granted, besides the resource itself.
	Subresources []string `json:"subresources,omitempty"`
}

// For returns the grant of the rule for that type of user.
func (r Rule) For(t seedidentity.Type) Grant {
	switch t {
	case seedidentity.Gardenlet:
		return r.Gardenlet
	case seedidentity.Extension:
		return r.Extension
	default:
		return Grant{}
	}
}

// OfSeed returns the rule with the seed filled in.
func (r Rule) OfSeed(seed string) Rule {
	r.Namespace, r.Name = parsePattern(r.Namespace).of(seed), parsePattern(r.Name).of(seed)
	return r
}

// Objects describes the objects of the rule: "secrets in seed-<seed>".
func (r Rule) Objects() string {
	s := r.Resource
	if r.Group == "events.k8s.io" {
		s += "." + r.Group // the only resource name that is in two groups
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// String returns the grant in the words of the table: "free: create; graph: get update; subresources: status".
func (g Grant) String() string {
	var parts []string
	if g.Free != 0 {
		parts = append(parts, "free: "+g.Free.String())
	}
	if g.Graph != 0 {
		parts = append(parts, "graph: "+g.Graph.String())
	}
	if g.Within != 0 {
		parts = append(parts, "within the seed's namespaces: "+g.Within.String())
	}
	if g.Selected != 0 {
		parts = append(parts, "with the "+g.Selector.String()+": "+g.Selected.String())
	}
	if len(parts) > 0 && len(g.Subresources) > 0 {
		parts = append(parts, "subresources: "+strings.Join(g.Subresources, " "))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// covers reports whether the grant includes the subresource, "" being the resource itself.
func (g Grant) covers(subresource string) bool {
	return subresource == "" || slices.Contains(g.Subresources, subresource)
}

// Reads says which objects gardenlets and extensions may read of the resources that belong to one seed each: Bastions,
// ControllerInstallations, Gardenlets, ManagedSeeds, Seeds and Shoots.
type Reads string

const (
	// ReadsSeed is for those that lead to the seed, and lists with a selector for the seed, as in Gardener since v1.129.
	ReadsSeed Reads = "seed"
	// ReadsAll is for all, as the table of "Implemented Rules" has it.
	ReadsAll Reads = "all"
)

// Validate returns an error unless it is a known value or empty.
func (r Reads) Validate() error {
	if r != "" && r != ReadsSeed && r != ReadsAll {
		return fmt.Errorf("%q: say %s or %s", string(r), ReadsSeed, ReadsAll)
	}
	return nil
}

// Rules returns the whole table, a rule for each resource of each row, in the order of "Implemented Rules".
func Rules(reads Reads) []Rule {
	all := make([]Rule, 0, len(ruleTable)+len(resources))
	for _, row := range ruleTable {
		for name := range strings.FieldsSeq(row.resources) {
			if known, found := resources[name]; found {
				all = append(all, row.rule(known, selectors[name], reads))
			}
		}
	}
	return all
}

func (r row) rule(of resource, selector Selector, reads Reads) Rule {
	return Rule{
		Group:      of.group,
		Resource:   of.name,
		Kind:       of.kind,
		Namespaced: of.namespaced,
		Namespace:  r.namespace,
		Name:       r.name,
		Gardenlet:  r.both.or(r.gardenlet).parse(selector, reads),
		Extension:  r.both.or(r.extension).parse(selector, reads),
	}
}

func (g grant) or(other grant) grant {
	if g == (grant{}) {
		return other
	}
	return g
}

func (g grant) parse(selector Selector, reads Reads) Grant {
	parsed := Grant{Free: parseVerbs(g.free), Graph: parseVerbs(g.graph), Within: parseVerbs(g.within),
		Subresources: strings.Fields(g.sub)}
	if reads == ReadsAll {
		free := parseVerbs(g.all)
		parsed.Free, parsed.Graph = parsed.Free|free, parsed.Graph&^free
	} else if g.selected != "" {
		parsed.Selected, parsed.Selector = parseVerbs(g.selected), selector
	}
	return parsed
}

// rules has the tables by resource.
var rules = map[Reads]map[groupResource]*index{
	ReadsSeed: makeIndex(Rules(ReadsSeed)),
	ReadsAll:  makeIndex(Rules(ReadsAll)),
}

type groupResource struct{ group, resource string }

// index has the rules of one resource.
type index struct {
	namespaced bool
	rules      []indexed
}

// indexed is a rule with its precomputed patterns and reasons.
type indexed struct {
	Rule
	namespace, name pattern
	// The reasons to allow.
	free, path, within, selected string
}

func makeIndex(rules []Rule) map[groupResource]*index {
	all := make(map[groupResource]*index, len(rules))
	for _, rule := range rules {
		key := groupResource{rule.Group, rule.Resource}
		of := all[key]
		if of == nil {
			of = &index{namespaced: rule.Namespaced}
			all[key] = of
		}
		of.rules = append(of.rules, indexed{
			Rule:      rule,
			namespace: parsePattern(rule.Namespace),
			name:      parsePattern(rule.Name),
			free:      "allowed: the verb is free for " + rule.Objects(),
			path:      "allowed by the graph: the object leads to the seed, which the rule for " + rule.Objects() + " asks for",
			within:    "allowed by the graph: the namespace leads to the seed, which the rule for " + rule.Objects() + " asks for",
			selected:  "allowed: the selector is for the objects of the seed, which the rule for " + rule.Objects() + " asks for",
		})
	}
	return all
}

// isFor reports whether the rule applies to the object.
func (r *indexed) isFor(object target, seed string) bool {
	return r.namespace.matches(object.namespace, seed) && r.name.matches(object.name, seed)
}

// Selector is a selector for the objects of a seed: a field that has the name of the seed, or a label that ends with
// it.
type Selector struct {
	Field string `json:"field,omitempty"`
	Label string `json:"label,omitempty"`
}

// Of returns the field selector or the label selector for the seed.
func (s Selector) Of(seed string) (fieldSelector, labelSelector string) {
	if s.Field != "" {
		return s.Field + "=" + seed, ""
	}
	return "", s.Label + seed + "=true"
}

// String returns the selector in the words of the table: "field selector spec.seedName=<seed>".
func (s Selector) String() string {
	field, label := s.Of(placeholders[seedName])
	if field != "" {
		return "field selector " + field
	}
	return "label selector " + label
}

// isIn reports whether all objects that the request selects are of the seed. Requirements other than for one value do
// not count: an object without the label has no value "false" as well.
func (s Selector) isIn(attrs authorizer.Attributes, seed string) bool {
	if s.Field != "" {
		requirements, err := attrs.GetFieldSelector()
		return err == nil && slices.ContainsFunc(requirements, func(r fields.Requirement) bool {
			return r.Field == s.Field && isEquality(r.Operator) && r.Value == seed
		})
	}
	requirements, err := attrs.GetLabelSelector()
	return err == nil && slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		of, found := strings.CutPrefix(r.Key(), s.Label)
		values := r.ValuesUnsorted()
		return found && of == seed && isEquality(r.Operator()) && len(values) == 1 && values[0] == "true"
	})
}

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
