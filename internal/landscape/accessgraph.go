package landscape

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
)

// GraphFilter is graph.Filter as it is typed: with the name of the kind.
type GraphFilter struct{ Kind, Namespace, Name string }

// The formats of the graph.
const (
	graphText = "text"
	graphDOT  = "dot"
	graphJSON = "json"
	graphSVG  = "svg"
)

// writeGraph writes what the query asks for: the vertices that match, all that they lead to, and what leads to them
// directly.
func (a *access) writeGraph(w io.Writer, query url.Values) error {
	whole := newPart(a.graph.Snapshot())
	selected, err := whole.selected(GraphFilter{Kind: query.Get("kind"), Namespace: query.Get("namespace"), Name: query.Get("name")})
	if err != nil {
		return err
	}
	filtered := len(selected) < len(whole.Vertices)
	switch format := query.Get("format"); format {
	case graphText:
		return whole.writeText(w, selected, filtered)
	case graphDOT:
		return webhook.WriteDOT(w, whole.around(selected, filtered))
	case graphJSON:
		return webhook.WriteJSON(w, whole.around(selected, filtered))
	case graphSVG:
		return writeSVG(w, whole.around(selected, filtered), selected, filtered)
	default:
		return &UsageError{fmt.Errorf("-o %q: one of text, dot, json, svg", format)}
	}
}

// part is a snapshot, or a part of one, that can be walked in both directions.
type part struct {
	graph.Snapshot
	targets, sources map[graph.Vertex][]graph.Vertex
}

func newPart(s graph.Snapshot) part {
	p := part{Snapshot: s, targets: map[graph.Vertex][]graph.Vertex{}, sources: map[graph.Vertex][]graph.Vertex{}}
	for _, edge := range s.Edges { // sorted, so what is made of them is
		p.targets[edge.From] = append(p.targets[edge.From], edge.To)
		p.sources[edge.To] = append(p.sources[edge.To], edge.From)
	}
	return p
}

func (p part) selected(f GraphFilter) ([]graph.SnapshotVertex, error) {
	filter := graph.Filter{Namespace: f.Namespace, Name: f.Name}
	if f.Kind != "" {
		var known bool
		if filter.Kind, known = graph.ParseKind(f.Kind); !known {
			return nil, &UsageError{fmt.Errorf("--kind %q: the graph has %s", f.Kind, strings.Join(graph.KindNames(), ", "))}
		}
	}
	return filter.Select(p.Vertices), nil
}

// around is the selected vertices, all that they lead to, what leads to them directly, and the edges between all these.
func (p part) around(selected []graph.SnapshotVertex, filtered bool) graph.Snapshot {
	if !filtered {
		return p.Snapshot
	}
	chosen := map[graph.Vertex]bool{}
	var queue []graph.Vertex
	for _, vertex := range selected {
		chosen[vertex.Vertex] = true
		queue = append(queue, vertex.Vertex)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, target := range p.targets[queue[0]] {
			if !chosen[target] {
				chosen[target] = true
				queue = append(queue, target)
			}
		}
	}
	for _, vertex := range selected {
		for _, source := range p.sources[vertex.Vertex] {
			chosen[source] = true
		}
	}
	s := graph.Snapshot{Vertices: []graph.SnapshotVertex{}, Edges: []graph.Edge{}}
	for _, vertex := range p.Vertices {
		if chosen[vertex.Vertex] {
			s.Vertices = append(s.Vertices, vertex)
		}
	}
	for _, edge := range p.Edges {
		if chosen[edge.From] && chosen[edge.To] {
			s.Edges = append(s.Edges, edge)
		}
	}
	return s
}

// writeText lists vertices with their edges. Of a part of the graph it follows each way to its end.
func (p part) writeText(w io.Writer, selected []graph.SnapshotVertex, filtered bool) error {
	out := bufio.NewWriter(w)
	for _, vertex := range selected {
		fmt.Fprintln(out, vertex.Vertex)
		if filtered {
			p.writeTree(out, vertex.Vertex, "  ", map[graph.Vertex]bool{vertex.Vertex: true})
			for _, source := range p.sources[vertex.Vertex] {
				fmt.Fprintf(out, "  ← %s\n", source)
			}
			continue
		}
		for _, target := range p.targets[vertex.Vertex] {
			fmt.Fprintf(out, "  → %s\n", target)
		}
	}
	fmt.Fprintf(out, "%d of %d objects, %d edges in all\n", len(selected), len(p.Vertices), len(p.Edges))
	return out.Flush()
}

// writeTree follows every way, and each object's ways once.
func (p part) writeTree(out io.Writer, from graph.Vertex, indent string, seen map[graph.Vertex]bool) {
	for _, target := range p.targets[from] {
		again := seen[target] && len(p.targets[target]) > 0
		seen[target] = true
		if again {
			fmt.Fprintf(out, "%s→ %s (see above)\n", indent, target)
			continue
		}
		fmt.Fprintf(out, "%s→ %s\n", indent, target)
		p.writeTree(out, target, indent+"  ", seen)
	}
}

// farthest returns the way to the most distant vertex that another leads to, the vertex itself if it leads nowhere.
func (p part) farthest(from graph.Vertex) []graph.Vertex {
	came := map[graph.Vertex]graph.Vertex{}
	queue := []graph.Vertex{from}
	last := from
	for seen := map[graph.Vertex]bool{from: true}; len(queue) > 0; queue = queue[1:] {
		last = queue[0]
		for _, target := range p.targets[last] {
			if !seen[target] {
				seen[target] = true
				came[target] = last
				queue = append(queue, target)
			}
		}
	}
	way := []graph.Vertex{last}
	for last != from {
		last = came[last]
		way = append(way, last)
	}
	slices.Reverse(way)
	return way
}
