package authorizer

import "github.com/gardenlite/gardenlite/internal/authz/seedidentity"

// rules is the table by resource.
var rules = makeIndex(Rules())

type groupResource struct{ group, resource string }

// index has the rules of one resource.
type index struct {
	namespaced bool
	rules      []indexed
}

// indexed is a rule with what can be made of it before a request comes.
type indexed struct {
	Rule
	namespace, name pattern
	free, path      string // the reasons to allow
	within          string
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
		})
	}
	return all
}

func (r *indexed) grant(t seedidentity.Type) *Grant {
	if t == seedidentity.Extension {
		return &r.Extension
	}
	return &r.Gardenlet
}

// isFor says whether the rule is for the object.
func (r *indexed) isFor(object target, seed string) bool {
	return r.namespace.matches(object.namespace, seed) && r.name.matches(object.name, seed)
}
