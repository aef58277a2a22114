package graphview

import (
	"slices"
	"strings"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// selector selects the vertices to show. Empty fields match everything; in Namespace and Name, a * matches any text.
type selector struct {
	Kind            graph.Kind // 0 for all
	Namespace, Name string
}

func (f selector) selectFrom(vertices []graph.SnapshotVertex) (selected []graph.SnapshotVertex) {
	for _, v := range vertices {
		if (f.Kind == 0 || f.Kind == v.Kind) && globMatches(f.Namespace, v.Namespace) && globMatches(f.Name, v.Name) {
			selected = append(selected, v)
		}
	}
	return selected
}

// globMatches reports whether text matches a pattern, in which * matches any text. An empty pattern matches everything.
func globMatches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == text
	}
	rest, found := strings.CutPrefix(text, pieces[0])
	for _, piece := range pieces[1 : len(pieces)-1] {
		if found {
			_, rest, found = strings.Cut(rest, piece)
		}
	}
	return found && strings.HasSuffix(rest, pieces[len(pieces)-1])
}

// KindNames returns the names of all kinds, sorted.
func KindNames() []string {
	var names []string
	for _, kind := range graph.Kinds() {
		names = append(names, kind.String())
	}
	slices.Sort(names)
	return names
}
