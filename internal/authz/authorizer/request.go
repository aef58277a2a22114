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

// target is the object of a request.
type target struct {
	namespace, name string
	// cause is the reason why the request has no single object, 0 if it has one.
	cause cause
}

// targetOf returns the object of a request: the one that the request names, or, for list and watch, the field selector.
//
// For a list with the field selector metadata.name, the API server sets the name itself. The selector is read
// nevertheless, because an access review may contain only one of them. If they contradict each other, there is no
// object.
func targetOf(attrs authorizer.Attributes, of *index) target {
	t := target{namespace: attrs.GetNamespace(), name: attrs.GetName()}
	if !isNamespace(t.namespace) || !isName(t.name) {
		t.cause = malformedName
		return t
	}
	if !of.namespaced {
		// In a request for namespaces, it is the name of the object. In others it has no meaning, and must not make the
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

// VertexOf returns the vertex of the object of a request, and whether the request has a single object.
func VertexOf(attrs authorizer.Attributes) (graph.Vertex, bool) {
	of := rules[ReadsSeed][groupResource{attrs.GetAPIGroup(), attrs.GetResource()}]
	if of == nil || len(of.rules) == 0 {
		return graph.Vertex{}, false
	}
	t := targetOf(attrs, of)
	return t.vertex(of.rules[0].Kind), t.cause == 0
}

func (t target) vertex(kind graph.Kind) graph.Vertex {
	return graph.Vertex{Kind: kind, Namespace: t.namespace, Name: t.name}
}

// selectedName returns the name to which a list or watch is restricted, "" if there is none or more than one.
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
	return r.Field == nameField && isEquality(r.Operator)
}

func isEquality(o selection.Operator) bool {
	return o == selection.Equals || o == selection.DoubleEquals || o == selection.In
}

// isName reports whether s is empty or can be a name in a request's path. It is stricter than the API, which allows
// names with spaces or non-ASCII characters for some kinds: no object of a seed has such a name, and reasons and logs
// stay on one line.
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

// isNamespace reports whether s is empty or can be the name of a namespace.
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
