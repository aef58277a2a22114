package graphview

import (
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// Filter selects the vertices to show, as entered by a user. Kind is the name of a kind. In Namespace and Name, a *
// matches any text.
type Filter struct{ Kind, Namespace, Name string }

// FilterOf returns the filter in the parameters of a query.
func FilterOf(query url.Values) Filter {
	return Filter{Kind: query.Get("kind"), Namespace: query.Get("namespace"), Name: query.Get("name")}
}

// Values returns the filter as parameters of a query.
func (f Filter) Values() url.Values {
	query := url.Values{}
	for key, value := range map[string]string{"kind": f.Kind, "namespace": f.Namespace, "name": f.Name} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}

// parse returns a usage error if the kind is unknown.
func (f Filter) parse() (selector, error) {
	kind, ok := graph.ParseKind(f.Kind)
	if !ok && f.Kind != "" {
		return selector{}, usage.Errorf("%q is no kind of the graph: the graph has %s", f.Kind, strings.Join(KindNames(), ", "))
	}
	return selector{Kind: kind, Namespace: f.Namespace, Name: f.Name}, nil
}

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

// view provides walks through a snapshot. Both slices of a snapshot are sorted, so a walk through a few vertices of a
// graph with millions of edges needs no index.
type view struct{ graph.Snapshot }

func (v view) find(vertex graph.Vertex) (graph.SnapshotVertex, bool) {
	i, found := slices.BinarySearchFunc(v.Vertices, vertex, func(a graph.SnapshotVertex, b graph.Vertex) int { return a.Compare(b) })
	if !found {
		return graph.SnapshotVertex{Vertex: vertex}, false
	}
	return v.Vertices[i], true
}

// outgoing returns the vertices to which the vertex has an edge.
func (v view) outgoing(from graph.Vertex) (targets []graph.Vertex) {
	begin := sort.Search(len(v.Edges), func(i int) bool { return v.Edges[i].From.Compare(from) >= 0 })
	for _, edge := range v.Edges[begin:] {
		if edge.From != from {
			break
		}
		targets = append(targets, edge.To)
	}
	return targets
}

// incoming returns, for each of the vertices, those that have an edge to it.
func (v view) incoming(vertices []graph.SnapshotVertex) map[graph.Vertex][]graph.Vertex {
	all := make(map[graph.Vertex][]graph.Vertex, len(vertices))
	for _, vertex := range vertices {
		all[vertex.Vertex] = nil
	}
	for _, edge := range v.Edges {
		if sources, ok := all[edge.To]; ok {
			all[edge.To] = append(sources, edge.From)
		}
	}
	return all
}

// around returns the part of the graph that is shown for the selected vertices: these, all vertices to which they lead
// (nearest first), those that lead to them directly, and the edges between all of them. It has at most the given number
// of vertices; left did not fit.
func (v view) around(selected []graph.SnapshotVertex, most int) (part graph.Snapshot, left int) {
	var chosen []graph.Vertex
	seen := map[graph.Vertex]bool{} // true if it is chosen
	add := func(vertex graph.Vertex) {
		if _, was := seen[vertex]; was {
			return
		}
		seen[vertex] = len(chosen) < most
		if seen[vertex] {
			chosen = append(chosen, vertex)
		} else {
			left++
		}
	}
	for _, vertex := range selected {
		add(vertex.Vertex)
	}
	for i := 0; i < len(chosen); i++ {
		for _, target := range v.outgoing(chosen[i]) {
			add(target)
		}
	}
	incoming := v.incoming(selected)
	for _, vertex := range selected {
		for _, source := range incoming[vertex.Vertex] {
			add(source)
		}
	}
	slices.SortFunc(chosen, graph.Vertex.Compare)
	part = graph.Snapshot{Vertices: []graph.SnapshotVertex{}, Edges: []graph.Edge{}}
	for _, from := range chosen {
		vertex, _ := v.find(from)
		part.Vertices = append(part.Vertices, vertex)
		for _, to := range v.outgoing(from) {
			if seen[to] {
				part.Edges = append(part.Edges, graph.Edge{From: from, To: to})
			}
		}
	}
	return part, left
}

// connected returns the vertices without those that have no edges, except Seeds.
func (v view) connected(vertices []graph.SnapshotVertex) []graph.SnapshotVertex {
	has := map[graph.Vertex]bool{}
	for _, edge := range v.Edges {
		has[edge.From], has[edge.To] = true, true
	}
	return slices.DeleteFunc(slices.Clone(vertices), func(vertex graph.SnapshotVertex) bool {
		return !has[vertex.Vertex] && vertex.Kind != graph.KindSeed
	})
}

// Farthest returns a path from the vertex to the most distant vertex to which it leads; nil if it is not in the graph.
func Farthest(s graph.Snapshot, from graph.Vertex) []graph.Vertex {
	v := view{s}
	if _, found := v.find(from); !found {
		return nil
	}
	paths := [][]graph.Vertex{{from}}
	seen := map[graph.Vertex]bool{from: true}
	for i := 0; i < len(paths); i++ {
		for _, target := range v.outgoing(paths[i][len(paths[i])-1]) {
			if !seen[target] {
				seen[target] = true
				paths = append(paths, append(slices.Clip(paths[i]), target))
			}
		}
	}
	return paths[len(paths)-1]
}
