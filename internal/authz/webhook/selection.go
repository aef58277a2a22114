package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

const (
	// largeGraph is the number of vertices above which the page shows the seeds first.
	largeGraph = 2000
	// listedVertices are on one page, with at least listedNeighbours in each direction, and more where there is room.
	listedVertices   = 2000
	listedNeighbours = 20
	listedEdges      = 20000
)

func filterOf(query url.Values) (f graph.Filter, err error) {
	if name := query.Get("kind"); name != "" {
		kind, ok := graph.ParseKind(name)
		if !ok {
			return f, malformed("%q is no kind of the graph; the kinds are %s", name, strings.Join(graph.KindNames(), ", "))
		}
		f.Kind = kind
	}
	f.Namespace, f.Name = query.Get("namespace"), query.Get("name")
	return f, nil
}

// view is a snapshot that can be searched. Both slices of a snapshot are sorted, so that no index of a graph with
// millions of edges has to be built for looking at a few of them.
type view struct{ graph.Snapshot }

func (v view) exists(vertex graph.Vertex) bool {
	i, found := slices.BinarySearchFunc(v.Vertices, vertex, func(a graph.SnapshotVertex, b graph.Vertex) int { return a.Compare(b) })
	return found && v.Vertices[i].Exists
}

// outgoing are the edges from a vertex.
func (v view) outgoing(from graph.Vertex) []graph.Edge {
	begin := sort.Search(len(v.Edges), func(i int) bool { return v.Edges[i].From.Compare(from) >= 0 })
	end := begin
	for end < len(v.Edges) && v.Edges[end].From == from {
		end++
	}
	return v.Edges[begin:end]
}

// incoming are the vertices from which an edge goes to each of these.
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

// around is the part of the graph that has the vertices a filter matches, their neighbours, and the edges between a
// matched vertex and another.
func (v view) around(f graph.Filter) graph.Snapshot {
	if f == (graph.Filter{}) {
		return v.Snapshot
	}
	part := graph.Snapshot{Vertices: []graph.SnapshotVertex{}, Edges: []graph.Edge{}}
	matched := map[graph.Vertex]bool{}
	for _, vertex := range f.Select(v.Vertices) {
		matched[vertex.Vertex] = true
	}
	present := map[graph.Vertex]bool{}
	for vertex := range matched {
		present[vertex] = true
	}
	for _, edge := range v.Edges {
		if matched[edge.From] || matched[edge.To] {
			part.Edges = append(part.Edges, edge)
			present[edge.From], present[edge.To] = true, true
		}
	}
	for _, vertex := range v.Vertices {
		if present[vertex.Vertex] {
			part.Vertices = append(part.Vertices, vertex)
		}
	}
	return part
}

// listed is a vertex in the list of the page.
type listed struct {
	graph.SnapshotVertex
	Directions [2]direction
}

// direction are a vertex's neighbours in one direction.
type direction struct {
	Title      string
	Count      int
	Neighbours []link
	More       int
}

// link leads to a vertex: to its place on this page if it is listed, and to a page of its own if not.
type link struct {
	graph.Vertex
	URL string
}

// list describes the selected vertices, as many as fit on a page.
func (v view) list(selected []graph.SnapshotVertex) []listed {
	neighbours := max(listedNeighbours, listedEdges/max(1, len(selected)))
	incoming := v.incoming(selected)
	all := make([]listed, 0, len(selected))
	for _, vertex := range selected {
		var targets []graph.Vertex
		for _, edge := range v.outgoing(vertex.Vertex) {
			targets = append(targets, edge.To)
		}
		describe := func(title string, vertices []graph.Vertex) direction {
			d := direction{Title: title, Count: len(vertices)}
			for _, neighbour := range vertices[:min(len(vertices), neighbours)] {
				_, here := incoming[neighbour]
				d.Neighbours = append(d.Neighbours, linkTo(neighbour, here))
			}
			d.More = d.Count - len(d.Neighbours)
			return d
		}
		all = append(all, listed{SnapshotVertex: vertex, Directions: [2]direction{
			describe("incoming", incoming[vertex.Vertex]), describe("outgoing", targets),
		}})
	}
	return all
}

// anchor is the place of a vertex on a page.
func anchor(v graph.Vertex) string { return fmt.Sprintf("%s/%s/%s", v.Kind, v.Namespace, v.Name) }

func linkTo(v graph.Vertex, here bool) link {
	to := url.URL{Fragment: anchor(v)}
	if !here {
		to.Path, to.RawQuery = GraphPath, queryOf(v).Encode()
	}
	return link{Vertex: v, URL: to.String()}
}

// queryOf is the filter that matches one vertex.
func queryOf(v graph.Vertex) url.Values {
	query := url.Values{"kind": {v.Kind.String()}, "name": {v.Name}}
	if v.Namespace != "" {
		query.Set("namespace", v.Namespace)
	}
	return query
}
