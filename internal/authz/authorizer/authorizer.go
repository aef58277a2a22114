package authorizer

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Graph is what the authorizer asks of the resource dependency graph. Has and HasPath are on the path of every
// request, Path is for explanations.
type Graph interface {
	Has(v graph.Vertex) bool
	HasPath(from graph.Vertex, seed string) bool
	Path(from graph.Vertex, seed string) []graph.Vertex
}

// Authorizer applies the rules. It keeps no state, and may be used by many at once if its graph may.
type Authorizer struct {
	graph Graph
}

var _ authorizer.Authorizer = &Authorizer{}

// New returns the authorizer that looks objects up in that graph. The graph has to be complete before the first
// request: until then the caller has to answer that it is not ready.
func New(g Graph) *Authorizer { return &Authorizer{graph: g} }

// Authorize returns allow or no opinion, and in one line because of which rule, or for want of what. It never returns
// deny, and no error: what it cannot decide it has no opinion on.
func (a *Authorizer) Authorize(_ context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	v := a.decide(attrs)
	return v.decision(), a.reason(attrs, &v), nil
}

// verdict is a decision with what led to it, so that the reason can be made from it.
type verdict struct {
	cause cause
	rule  *indexed // the rule that allows, or the one that would if the graph had a path; else nil
	asks  seedidentity.Identity
	of    *index // of the resource, nil if no rule names it
	on    target
}

// cause is what decided, the later the nearer to being allowed. Those from allowedFree on allow.
type cause uint8

const (
	_                  cause = iota
	notAsked                 // by a gardenlet or extension
	notResource              // the request is for a path
	unknownResource          // no rule is for the resource
	malformedName            // no object can be called so
	malformedSelector        // a target's: the field selector cannot be read
	contradictingNames       // a target's: the request names several objects
	unnamed                  // a target's: the request names none
	anyNamespace             // a target's: the name may be in any namespace
	noRule                   // gives the verb for the object
	noPathWithin             // a rule would allow it in a namespace with one
	noPath                   // a rule would allow it with one
	allowedFree              // at once
	allowedWithin            // because the graph leads from the namespace to the seed
	allowedPath              // by the graph
)

func (v *verdict) decision() authorizer.Decision {
	if v.cause >= allowedFree {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

// decide finds the first rule that allows the request.
func (a *Authorizer) decide(attrs authorizer.Attributes) verdict {
	v := verdict{asks: seedidentity.OfUser(attrs.GetUser())}
	if v.asks.Type == seedidentity.None {
		v.cause = notAsked
		return v
	}
	if !attrs.IsResourceRequest() {
		v.cause = notResource
		return v
	}
	if v.of = rules[groupResource{attrs.GetAPIGroup(), attrs.GetResource()}]; v.of == nil {
		v.cause = unknownResource
		return v
	}
	if v.on = targetOf(attrs, v.of); v.on.cause == malformedName {
		v.cause = malformedName
		return v
	}
	v.cause = noRule
	for i := range v.of.rules {
		rule := &v.of.rules[i]
		if cause := a.apply(rule, attrs, &v); cause > v.cause {
			v.cause, v.rule = cause, rule
		}
		if v.cause >= allowedFree {
			break
		}
	}
	return v
}

// apply returns what one rule says on the request: 0 where it says nothing.
func (a *Authorizer) apply(rule *indexed, attrs authorizer.Attributes, v *verdict) cause {
	grant := rule.grant(v.asks.Type)
	if !grant.covers(attrs.GetSubresource()) || !rule.isFor(v.on, v.asks.Seed) {
		return 0
	}
	verb := attrs.GetVerb()
	if grant.Free.Has(verb) {
		return allowedFree
	}
	if grant.Within.Has(verb) {
		if a.leads(graph.Vertex{Kind: graph.KindNamespace, Name: v.on.namespace}, v.asks.Seed) {
			return allowedWithin
		}
		return noPathWithin
	}
	if !grant.Graph.Has(verb) {
		return 0
	}
	if v.on.cause != 0 {
		return noPath
	}
	vertex := v.on.vertex(rule.Kind)
	if a.leads(vertex, v.asks.Seed) {
		return allowedPath
	}
	return noPath
}

// leads says whether there is a path from the object to the seed, which a Seed has to itself.
func (a *Authorizer) leads(from graph.Vertex, seed string) bool {
	return from.Kind == graph.KindSeed && from.Name == seed || a.graph.HasPath(from, seed)
}
