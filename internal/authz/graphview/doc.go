// Package graphview selects a part of the resource dependency graph and shows it: as text, DOT, JSON and SVG, and as a page
// for a browser with a drawing and a list. There is one selection (view.go) and one layout (layout.go, drawing.go) for all
// of them.
//
// It may import internal/authz/graph and internal/usage. It promises that the same graph is always shown in the same way,
// that no name in the graph becomes markup or a script, and that a cycle in the graph does no harm.
package graphview
