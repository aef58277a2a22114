package graph

import "cmp"

// Vertex names an object. Namespace is empty for cluster-scoped objects, Namespaces among them.
type Vertex struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns for example "Shoot garden-dev/a" or "Seed local".
func (v Vertex) String() string {
	if v.Namespace == "" {
		return v.Kind.String() + " " + v.Name
	}
	return v.Kind.String() + " " + v.Namespace + "/" + v.Name
}

// Compare orders vertices by the name of the kind, by namespace and by name.
func (v Vertex) Compare(w Vertex) int {
	if v.Kind != w.Kind {
		return cmp.Or(cmp.Compare(v.Kind.String(), w.Kind.String()), cmp.Compare(v.Kind, w.Kind))
	}
	return cmp.Or(cmp.Compare(v.Namespace, w.Namespace), cmp.Compare(v.Name, w.Name))
}

// Edge says that a seed to which To belongs may access From as well: it points toward the seed.
type Edge struct {
	From Vertex `json:"from"`
	To   Vertex `json:"to"`
}

// String returns for example "CloudProfile local → Shoot garden-dev/a".
func (e Edge) String() string { return e.From.String() + " → " + e.To.String() }

// Compare orders edges by From, then To.
func (e Edge) Compare(f Edge) int { return cmp.Or(e.From.Compare(f.From), e.To.Compare(f.To)) }
