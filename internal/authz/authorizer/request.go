package authorizer

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

const (
	maxNameLength      = 253
	maxNamespaceLength = 63
	nameField          = "metadata.name"
)

// target is the object that a request is for.
type target struct {
	namespace, name string
	// cause is why there is no such single object, 0 if there is one.
	cause cause
}

// targetOf reads the object out of the request: named by it, or, for list and watch, by the field selector.
//
// The API server gives a list with a field selector metadata.name that name itself; the selector is read nevertheless,
// since an access review may carry the one without the other. Where they disagree, no object is meant.
func targetOf(attrs authorizer.Attributes, of *index) target {
	t := target{namespace: attrs.GetNamespace(), name: attrs.GetName()}
	if !isNamespace(t.namespace) || !isName(t.name) {
		t.cause = malformedName
		return t
	}
	if !of.namespaced {
		// Of a namespaces request it is the object's own name. Of others it has no meaning, and must not make the
		// object look like another one.
		t.namespace = ""
	}
	if v := attrs.GetVerb(); v == "list" || v == "watch" {
		t.name, t.cause = selectedName(t.name, attrs)
	}
	switch {
	case t.cause != 0:
	case t.name == "":
		t.cause = unnamed
	case of.namespaced && t.namespace == "":
		t.cause = anyNamespace
	}
	return t
}

// VertexOf returns the vertex of the one object that a request is for, and whether there is one.
func VertexOf(attrs authorizer.Attributes) (graph.Vertex, bool) {
	of := rules[groupResource{attrs.GetAPIGroup(), attrs.GetResource()}]
	if of == nil || len(of.rules) == 0 {
		return graph.Vertex{}, false
	}
	t := targetOf(attrs, of)
	return t.vertex(of.rules[0].Kind), t.cause == 0
}

func (t target) vertex(kind graph.Kind) graph.Vertex {
	return graph.Vertex{Kind: kind, Namespace: t.namespace, Name: t.name}
}

// selectedName returns the one name that a list or watch is restricted to, "" if there is none or not just one.
func selectedName(name string, attrs authorizer.Attributes) (string, cause) {
	requirements, err := attrs.GetFieldSelector()
	if err != nil {
		return "", malformedSelector
	}
	for i := range requirements {
		if !selectsName(&requirements[i]) {
			continue
		}
		value := requirements[i].Value
		if value == "" || name != "" && name != value {
			return "", contradictingNames
		}
		if !isName(value) {
			return "", malformedName
		}
		name = value
	}
	return name, 0
}

func selectsName(r *fields.Requirement) bool {
	return r.Field == nameField &&
		(r.Operator == selection.Equals || r.Operator == selection.DoubleEquals || r.Operator == selection.In)
}

// isName says whether s can be in a request's path as a name, or is empty. It takes less than the API does, which lets
// some kinds have names with spaces or outside ASCII: no object that a seed has to do with is called so, and reasons
// and logs stay one line.
func isName(s string) bool {
	if len(s) > maxNameLength || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '/' || c == '%' {
			return false
		}
	}
	return true
}

// isNamespace says whether s can be the name of a namespace, or is empty.
func isNamespace(s string) bool {
	if len(s) > maxNamespaceLength {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '-' && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}
