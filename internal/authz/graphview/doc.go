// Package graphview selects a part of the resource dependency graph and shows it: as text, DOT, JSON and SVG, and as a
// page for a browser with a drawing and a list. All of them share the selection (view.go) and the layout (layout.go,
// drawing.go).
//
// It may import internal/authz/graph and internal/usage. It guarantees that the output depends only on the graph, that
// no name in the graph becomes markup or a script, and that it copes with cycles in the graph.
package graphview
