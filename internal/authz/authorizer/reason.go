package authorizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// maxWord is the maximum length of a word of the request in a reason.
const maxWord = 64

// reason returns one line with the rule that allows the request, or with the missing rule or path. The user sees it, so
// it is the same for an object of another seed and for one that does not exist.
func reason(attrs authorizer.Attributes, v *verdict) string {
	switch v.cause {
	case allowedFree:
		return v.rule.free
	case allowedPath:
		return v.rule.path
	case allowedWithin:
		return v.rule.within
	case allowedSelected:
		return v.rule.selected
	case notAsked:
		return whyNoSeedUser(attrs)
	case notResource:
		return "there are no rules for requests other than for resources"
	case unknownResource:
		return whyUnknown(attrs)
	case malformedName:
		return fmt.Sprintf("no object is called %s in namespace %s: names and namespaces are as in the API",
			quoted(attrs.GetName()), quoted(attrs.GetNamespace()))
	case noRule:
		return whyNoRule(attrs, v)
	case noPathWithin:
		return fmt.Sprintf("no path from Namespace %s to Seed %s, which the rule for %s asks for", quoted(attrs.GetNamespace()),
			v.asks.Seed, v.rule.Objects())
	default:
		return whyNoPath(attrs, v)
	}
}

func whyNoSeedUser(attrs authorizer.Attributes) string {
	user := attrs.GetUser()
	if user != nil && slices.Contains(user.GetGroups(), constants.SeedsGroup) {
		return "the user is in group " + constants.SeedsGroup + ", but its name does not say the seed: it has to be " +
			constants.SeedUserNamePrefix + placeholders[seedName]
	}
	return "the user is " + seedidentity.Identity{}.String()
}

// whyUnknown returns the reason for a resource without rules. It mentions a resource of the same name in another API
// group, which is the likely mistake.
func whyUnknown(attrs authorizer.Attributes) string {
	text := "there are no rules for " + word(attrs.GetResource()) + inGroup(word(attrs.GetAPIGroup()))
	for _, rule := range Rules(ReadsSeed) {
		if rule.Resource == attrs.GetResource() {
			return text + "; there are for those" + inGroup(rule.Group)
		}
	}
	return text
}

func inGroup(group string) string {
	if group == "" || group == `""` {
		return " in the core API group"
	}
	return " in API group " + group
}

// whyNoRule returns the reason for a request without a rule, with the nearest grant.
func whyNoRule(attrs authorizer.Attributes, v *verdict) string {
	resource, verb, sub := attrs.GetResource(), attrs.GetVerb(), attrs.GetSubresource()
	what := word(verb) + " " + resource
	if sub != "" {
		what += "/" + word(sub)
	}
	if elsewhere := grantedElsewhere(verb, sub, v); elsewhere != "" {
		return "no rule lets the " + v.asks.Type.String() + " " + what + " here: it is for " + elsewhere
	}
	text := "no rule lets the " + v.asks.Type.String() + " " + what
	if sub != "" && !slices.ContainsFunc(v.of.rules, func(r indexed) bool { return r.For(v.asks.Type).covers(sub) }) {
		text += ", the subresource is in no rule"
	}
	return text + " (" + v.grantOf(&v.of.rules[0]) + ")"
}

// grantOf returns the grant of a rule in words, with the seed filled in.
func (v *verdict) grantOf(rule *indexed) string { return v.withSeed(rule.For(v.asks.Type).String()) }

func (v *verdict) withSeed(text string) string {
	return strings.ReplaceAll(text, placeholders[seedName], v.asks.Seed)
}

// grantedElsewhere returns the objects for which a rule grants the verb, if it is not granted for the requested object.
func grantedElsewhere(verb, subresource string, v *verdict) string {
	var objects []string
	for i := range v.of.rules {
		rule := &v.of.rules[i]
		grant := rule.For(v.asks.Type)
		if grant.covers(subresource) && (grant.Free.Has(verb) || grant.Graph.Has(verb) || grant.Within.Has(verb)) {
			objects = append(objects, rule.OfSeed(v.asks.Seed).Objects())
		}
	}
	return strings.Join(objects, ", ")
}

// whyNoPath returns the reason for a request that would be allowed if the graph had a path.
func whyNoPath(attrs authorizer.Attributes, v *verdict) string {
	if v.on.cause == 0 {
		return "no path from " + v.on.vertex(v.rule.Kind).String() + " to Seed " + v.asks.Seed
	}
	text := attrs.GetVerb() + " " + attrs.GetResource() + " is allowed for one object that leads to the seed, and the "
	switch v.on.cause {
	case malformedSelector:
		return text + "field selector cannot be read"
	case contradictingNames:
		return text + "request names several or an empty one"
	case anyNamespace:
		return text + "request names no namespace"
	}
	text += "request names none"
	if verb := attrs.GetVerb(); verb == "list" || verb == "watch" {
		text += ": add the field selector " + nameField + "=<name>"
		if grant := v.rule.For(v.asks.Type); grant.Selected.Has(verb) {
			text += " or, for all objects of the seed, the " + v.withSeed(grant.Selector.String())
		}
	}
	return text
}

// word returns a word of the request for a reason: unchanged if it is plain, else quoted and truncated.
func word(s string) string {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return quoted(s)
		}
	}
	if s == "" || len(s) > maxWord {
		return quoted(s)
	}
	return s
}

func quoted(s string) string {
	if len(s) > maxWord {
		return strconv.QuoteToASCII(s[:maxWord]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
