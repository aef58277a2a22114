package graphview

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// The formats of the graph.
const (
	Text = "text"
	DOT  = "dot"
	JSON = "json"
	SVG  = "svg"
)

// ErrNoMatch is the error if a filter selects no vertex.
var ErrNoMatch = errors.New("nothing in the graph matches: \"gardenlite graph\" shows all of it")

// Write writes the vertices that match the filter, everything to which they lead, and the vertices that lead to them
// directly. The text format lists the matching vertices with their edges. If the filter selects no vertex, it writes
// nothing and returns ErrNoMatch. It returns a usage error if there is no such kind or format, or if the graph has too
// many vertices for a drawing.
func Write(w io.Writer, s graph.Snapshot, f Filter, format string) error {
	parsed, err := f.parse()
	if err != nil {
		return err
	}
	v := view{s}
	selected := parsed.selectFrom(s.Vertices)
	if len(selected) == 0 && f != (Filter{}) {
		return ErrNoMatch
	}
	filtered := len(selected) < len(s.Vertices)
	part := func() graph.Snapshot {
		if filtered {
			s, _ = v.around(selected, math.MaxInt)
		}
		return s
	}
	switch format {
	case Text:
		return v.writeText(w, selected, filtered)
	case DOT:
		return writeDOT(w, part())
	case JSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", " ")
		return encoder.Encode(part())
	case SVG:
		return writeSVG(w, v, selected, filtered)
	}
	return usage.Errorf("%q is no format of the graph: it is one of %s, %s, %s, %s", format, Text, DOT, JSON, SVG)
}

// writeText lists vertices with their edges. For a part of the graph, it follows each path to its end.
func (v view) writeText(w io.Writer, selected []graph.SnapshotVertex, filtered bool) error {
	out := bufio.NewWriter(w)
	incoming := map[graph.Vertex][]graph.Vertex{}
	if filtered {
		incoming = v.incoming(selected)
	}
	for _, vertex := range selected {
		fmt.Fprintln(out, vertex.Vertex)
		v.writeTree(out, vertex.Vertex, "  ", filtered, map[graph.Vertex]bool{vertex.Vertex: true})
		for _, source := range incoming[vertex.Vertex] {
			fmt.Fprintf(out, "  ← %s\n", source)
		}
	}
	fmt.Fprintf(out, "%d of %d objects, %d edges in all\n", len(selected), len(v.Vertices), len(v.Edges))
	return out.Flush()
}

// writeTree writes the vertices to which a vertex leads; if deep is set, recursively, and each subtree once.
func (v view) writeTree(out io.Writer, from graph.Vertex, indent string, deep bool, seen map[graph.Vertex]bool) {
	for _, target := range v.outgoing(from) {
		if deep && seen[target] && len(v.outgoing(target)) > 0 {
			fmt.Fprintf(out, "%s→ %s (see above)\n", indent, target)
			continue
		}
		seen[target] = true
		fmt.Fprintf(out, "%s→ %s\n", indent, target)
		if deep {
			v.writeTree(out, target, indent+"  ", deep, seen)
		}
	}
}

// writeDOT writes the language of Graphviz. Vertices whose object does not exist, or is of a kind that is not watched,
// are dashed. Names in the API contain neither quotes nor backslashes nor line ends; Go's quoting keeps any name in its
// string.
func writeDOT(w io.Writer, s graph.Snapshot) error {
	out := bufio.NewWriter(w)
	quote := func(v graph.Vertex) string { return strconv.Quote(v.String()) }
	fmt.Fprintln(out, "digraph \"resource dependency graph\" {\n  rankdir=LR;\n  node [shape=box];")
	for _, vertex := range s.Vertices {
		style := ""
		if !vertex.Exists {
			style = " [style=dashed]"
		}
		fmt.Fprintf(out, "  %s%s;\n", quote(vertex.Vertex), style)
	}
	for _, edge := range s.Edges {
		fmt.Fprintf(out, "  %s -> %s;\n", quote(edge.From), quote(edge.To))
	}
	fmt.Fprintln(out, "}")
	return out.Flush()
}
