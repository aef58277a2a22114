package graphview

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// Path is the path of the page.
const Path = "/debug/resource-dependency-graph"

const (
	// largeGraph is the number of vertices above which the page shows the Seeds first.
	largeGraph = 2000
	// listedVertices is the number of vertices on one page. Each has at least listedNeighbors neighbors in each
	// direction, and more if a page then has at most listedEdges edges.
	listedVertices  = 2000
	listedNeighbors = 20
	listedEdges     = 20000
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string

	pageTemplate = template.Must(template.Must(drawingTemplate.Clone()).New("page").Parse(pageHTML))
)

// page is the input of page.html. The template escapes everything for its context, except the style sheet and the
// script, which are files of this package.
type page struct {
	Nonce  string
	Style  template.CSS
	Script template.JS

	Path               string
	Filter             Filter
	Kinds              []string
	Message, JSON, DOT string
	Synced             bool
	Vertices, Edges    int
	Matched, First     int
	Listed             []listed
	Previous, Next     string
	Drawing            *drawing
}

// listed is a vertex in the list of the page.
type listed struct {
	graph.SnapshotVertex
	Directions [2]direction
}

type direction struct {
	Title       string
	Count, More int
	Neighbors   []link
}

// link is a link to a vertex: on this page if the vertex is listed, or else to a page for the vertex.
type link struct {
	graph.Vertex
	URL string
}

// Page writes an HTML page. Only its own style sheet and script have the nonce. It returns a usage error if the query
// has an unknown kind.
func Page(w io.Writer, s graph.Snapshot, query url.Values, nonce string, synced bool) error {
	p := &page{
		Nonce: nonce, Style: template.CSS(drawingCSS + pageCSS), Script: template.JS(pageJS), //nolint:gosec // files of this package
		Path: Path, Kinds: KindNames(), Synced: synced, Vertices: len(s.Vertices), Edges: len(s.Edges),
	}
	if err := p.show(view{s}, query); err != nil {
		return err
	}
	return pageTemplate.Execute(w, p)
}

// show selects the content of the page: for a large graph the Seeds, unless the query has a filter.
func (p *page) show(v view, query url.Values) error {
	f := FilterOf(query)
	if f == (Filter{}) && len(v.Vertices) > largeGraph && !query.Has("kind") {
		f.Kind = graph.KindSeed.String()
		p.Message = fmt.Sprintf("The graph has %d vertices, so the seeds are shown first. Filter for others.", len(v.Vertices))
	}
	parsed, err := f.parse()
	if err != nil {
		return err
	}
	if parsed.Kind != 0 {
		f.Kind = parsed.Kind.String()
	}
	selected := parsed.selectFrom(v.Vertices)
	if len(selected) == 0 && f.Name != "" && !strings.Contains(f.Name, "*") {
		parsed.Name = "*" + f.Name + "*"
		if selected = parsed.selectFrom(v.Vertices); len(selected) > 0 {
			p.Message = fmt.Sprintf("Nothing has exactly the name %q; these have it in their names.", f.Name)
			f.Name = parsed.Name // so that the links on the page have the same filter
		}
	}
	p.Filter, p.Matched = f, len(selected)
	p.JSON, p.DOT = f.url("format", JSON), f.url("format", DOT)
	filtered := len(selected) < len(v.Vertices)
	selected = p.turnTo(selected, query.Get("page"))
	p.Listed = v.list(selected)
	p.Drawing = v.draw(selected, filtered, mostOnPage)
	for i, b := range p.Drawing.Boxes {
		p.Drawing.Boxes[i].URL = linkTo(b.Vertex, false).URL
	}
	return nil
}

// turnTo returns the vertices of one page of a long list.
func (p *page) turnTo(selected []graph.SnapshotVertex, number string) []graph.SnapshotVertex {
	last := max(1, (len(selected)+listedVertices-1)/listedVertices)
	current, _ := strconv.Atoi(number) // 0 if it is no number
	current = min(max(current, 1), last)
	if current > 1 {
		p.Previous = p.Filter.url("page", strconv.Itoa(current-1))
	}
	if current < last {
		p.Next = p.Filter.url("page", strconv.Itoa(current+1))
	}
	p.First = (current-1)*listedVertices + 1
	return selected[p.First-1 : min(len(selected), current*listedVertices)]
}

func (v view) list(selected []graph.SnapshotVertex) []listed {
	most := max(listedNeighbors, listedEdges/max(1, len(selected)))
	incoming := v.incoming(selected)
	describe := func(title string, vertices []graph.Vertex) direction {
		d := direction{Title: title, Count: len(vertices)}
		for _, neighbor := range vertices[:min(len(vertices), most)] {
			_, here := incoming[neighbor]
			d.Neighbors = append(d.Neighbors, linkTo(neighbor, here))
		}
		d.More = d.Count - len(d.Neighbors)
		return d
	}
	all := make([]listed, 0, len(selected))
	for _, vertex := range selected {
		all = append(all, listed{SnapshotVertex: vertex, Directions: [2]direction{
			describe("incoming", incoming[vertex.Vertex]), describe("outgoing", v.outgoing(vertex.Vertex)),
		}})
	}
	return all
}

func anchor(v graph.Vertex) string { return fmt.Sprintf("%s/%s/%s", v.Kind, v.Namespace, v.Name) }

func linkTo(v graph.Vertex, here bool) link {
	to := url.URL{Fragment: anchor(v)}
	if !here {
		to.Path, to.RawQuery = Path, Filter{v.Kind.String(), v.Namespace, v.Name}.Values().Encode()
	}
	return link{Vertex: v, URL: to.String()}
}

// url returns the URL of the page with the filter and one more parameter.
func (f Filter) url(parameter, value string) string {
	query := f.Values()
	query.Set(parameter, value)
	if f.Kind == "" && parameter == "page" {
		query.Set("kind", "") // all kinds, also of a large graph
	}
	return Path + "?" + query.Encode()
}
