package authorizer

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// Graph is the part of the resource dependency graph that the authorizer uses: Has and HasPath for requests, Path and
// Snapshot for explanations.
type Graph interface {
	Has(v graph.Vertex) bool
	HasPath(from graph.Vertex, seed string) bool
	Path(from graph.Vertex, seed string) []graph.Vertex
	Snapshot() graph.Snapshot
}

// Authorizer applies the rules. It is stateless, and safe for concurrent use if its graph is.
type Authorizer struct {
	graph Graph
	reads Reads
}

var _ authorizer.Authorizer = &Authorizer{}

// New returns an authorizer with the graph, and with the rules of the reads. The graph has to be complete before the
// first request: until then the caller has to answer that it is not ready.
func New(g Graph, reads Reads) *Authorizer { return &Authorizer{graph: g, reads: reads} }

// Rules returns the rules that the authorizer applies.
func (a *Authorizer) Rules() []Rule { return Rules(a.reads) }

// Authorize returns allow or no opinion, with a reason of one line: the rule that allows the request, or what is
// missing. It never returns deny or an error: if it cannot decide, it has no opinion.
func (a *Authorizer) Authorize(_ context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	v := a.decide(attrs)
	return v.decision(), reason(attrs, &v), nil
}

// verdict is a decision with everything that led to it, from which the reason is derived.
type verdict struct {
	cause cause
	rule  *indexed // the rule that allows, or that would if the graph had a path; else nil
	asks  seedidentity.Identity
	of    *index // the rules for the resource; nil if there are none
	on    target
}

// cause is the reason for a decision, ordered: a later one is nearer to being allowed. From allowedFree on, the request
// is allowed.
type cause uint8

const (
	_                  cause = iota
	notAsked                 // the user is no gardenlet and no extension
	notResource              // the request is for a path
	unknownResource          // no rule is for the resource
	malformedName            // no object can have this name
	malformedSelector        // of a target: the field selector is invalid
	contradictingNames       // of a target: the request names several objects
	unnamed                  // of a target: the request names no object
	anyNamespace             // of a target: the name may be in any namespace
	noRule                   // no rule grants the verb for the object
	noPathWithin             // a rule would allow it if the graph had a path from the namespace
	noPath                   // a rule would allow it if the graph had a path from the object
	allowedFree              // without the graph
	allowedSelected          // the selector is for the objects of the seed
	allowedWithin            // the graph has a path from the namespace to the seed
	allowedPath              // the graph has a path from the object to the seed
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
	if v.of = rules[a.reads][groupResource{attrs.GetAPIGroup(), attrs.GetResource()}]; v.of == nil {
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

// apply returns the decision of one rule, 0 if the rule does not apply.
func (a *Authorizer) apply(rule *indexed, attrs authorizer.Attributes, v *verdict) cause {
	grant := rule.For(v.asks.Type)
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
	if grant.Selected.Has(verb) && v.on.cause == unnamed && grant.Selector.isIn(attrs, v.asks.Seed) {
		return allowedSelected
	}
	if !grant.Graph.Has(verb) {
		return 0
	}
	if v.on.cause != 0 {
		return noPath
	}
	if a.leads(v.on.vertex(rule.Kind), v.asks.Seed) {
		return allowedPath
	}
	return noPath
}

// leads reports whether there is a path from the object to the seed. A Seed always has a path to itself.
func (a *Authorizer) leads(from graph.Vertex, seed string) bool {
	return from.Kind == graph.KindSeed && from.Name == seed || a.graph.HasPath(from, seed)
}
