package authorizer

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// Explanation explains a decision.
type Explanation struct {
	Allowed bool `json:"allowed"`
	// Rule is the rule that allows the request, or else the nearest one, in the words of the table; empty if there are
	// no rules for the resource or the user.
	Rule string `json:"rule,omitempty"`
	// Reason is the reason that Authorize returns, with the seed to which the object leads instead. It is meant for
	// operators of the garden, not for the user of the request.
	Reason string `json:"reason,omitempty"`
	// Path is the path from the object to the seed of the user, if it allows the request; or else to the first other
	// seed to which the object leads, where Reason names that seed.
	Path []graph.Vertex `json:"path,omitempty"`
}

// Explain decides like Authorize, and explains the decision. It may be slow.
func (a *Authorizer) Explain(attrs authorizer.Attributes) Explanation {
	v := a.decide(attrs)
	e := Explanation{Allowed: v.decision() == authorizer.DecisionAllow, Reason: reason(attrs, &v)}
	if rule := v.nearest(); rule != nil {
		e.Rule = rule.OfSeed(v.asks.Seed).Objects() + ": " + v.grantOf(rule)
	}
	switch {
	case v.cause == allowedWithin:
		e.Path = a.path(graph.Vertex{Kind: graph.KindNamespace, Name: v.on.namespace}, v.asks.Seed)
	case v.cause == allowedPath:
		e.Path = a.path(v.on.vertex(v.rule.Kind), v.asks.Seed)
	case v.cause == noPath && v.on.cause == 0:
		if !a.graph.Has(v.on.vertex(v.rule.Kind)) {
			e.Reason += "; it is not in the graph, so nothing that belongs to a seed refers to it"
		} else if seed, path := a.otherSeed(v.on.vertex(v.rule.Kind), v.asks.Seed); seed != "" {
			e.Reason += "; it leads to Seed " + seed
			e.Path = path
		}
	}
	return e
}

// nearest returns the rule that decided, or else the first rule of the resource, which is for all of its objects.
func (v *verdict) nearest() *indexed {
	if v.rule != nil || v.of == nil {
		return v.rule
	}
	return &v.of.rules[0]
}

func (a *Authorizer) path(from graph.Vertex, seed string) []graph.Vertex {
	if path := a.graph.Path(from, seed); len(path) > 0 || from.Kind != graph.KindSeed {
		return path
	}
	return []graph.Vertex{from}
}

// otherSeed returns the first other seed, by name, to which the object leads, and the path.
func (a *Authorizer) otherSeed(from graph.Vertex, than string) (string, []graph.Vertex) {
	for _, vertex := range a.graph.Snapshot().Vertices {
		if vertex.Kind == graph.KindSeed && vertex.Name != than && a.leads(from, vertex.Name) {
			return vertex.Name, a.path(from, vertex.Name)
		}
	}
	return "", nil
}
