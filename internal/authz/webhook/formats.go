package webhook

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// WriteJSON writes a graph, or a part of one, for programs.
func WriteJSON(w io.Writer, snapshot graph.Snapshot) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(snapshot)
}

// WriteDOT writes a graph, or a part of one, in the language of Graphviz. Vertices whose object does not exist, or is of
// a kind that is not watched, are dashed.
func WriteDOT(w io.Writer, snapshot graph.Snapshot) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "digraph \"resource dependency graph\" {\n  rankdir=LR;\n  node [shape=box];")
	for _, vertex := range snapshot.Vertices {
		style := ""
		if !vertex.Exists {
			style = " [style=dashed]"
		}
		fmt.Fprintf(out, "  %s%s;\n", quote(vertex.Vertex), style)
	}
	for _, edge := range snapshot.Edges {
		fmt.Fprintf(out, "  %s -> %s;\n", quote(edge.From), quote(edge.To))
	}
	fmt.Fprintln(out, "}")
	return out.Flush()
}

// quote writes a name as a string of DOT. Names from the API have neither quotes nor backslashes nor line ends; should
// one come here all the same, Go's quoting keeps it inside the string.
func quote(v graph.Vertex) string { return strconv.Quote(v.String()) }
