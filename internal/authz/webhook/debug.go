package webhook

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// graphTimeout is for writing a large graph to a slow reader.
const graphTimeout = 2 * time.Minute

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"anchor": anchor}).Parse(pageHTML))
)

// page is what page.html shows. Everything but the style sheet and the script, which are ours, is escaped by the
// template for the place where it stands.
type page struct {
	Nonce  string
	Style  template.CSS
	Script template.JS

	Path     string
	Filter   graph.Filter
	Kinds    []string
	Message  string
	JSON     string
	DOT      string
	Synced   bool
	Vertices int
	Edges    int
	Matched  int
	First    int
	Listed   []listed
	Previous string
	Next     string
	Drawing  drawing
}

// showGraph is the debug page. One is made at a time, because each copies the graph.
func (s *Server) showGraph(w http.ResponseWriter, r *http.Request) {
	select {
	case s.rendering <- struct{}{}:
		defer func() { <-s.rendering }()
	case <-r.Context().Done():
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(graphTimeout))
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	query := r.URL.Query()
	f, err := filterOf(query)
	if err != nil {
		writeError(w, err)
		return
	}
	switch format := query.Get("format"); format {
	case "", "html":
		s.writePage(w, query, f)
	case "json":
		header.Set("Content-Type", mediaTypeJSON)
		s.logWriting(WriteJSON(w, view{s.config.Graph.Snapshot()}.around(f)))
	case "dot":
		header.Set("Content-Type", "text/vnd.graphviz; charset=utf-8")
		s.logWriting(WriteDOT(w, view{s.config.Graph.Snapshot()}.around(f)))
	default:
		writeError(w, malformed("%q is no format of the graph; the formats are html, json and dot", format))
	}
}

func (s *Server) logWriting(err error) {
	if err != nil {
		s.config.Log.V(1).Info("The graph was not read to its end", "error", err.Error())
	}
}

func (s *Server) writePage(w http.ResponseWriter, query url.Values, f graph.Filter) {
	nonce := rand.Text()
	p := describe(view{s.config.Graph.Snapshot()}, query, f)
	p.Nonce, p.Style, p.Script = nonce, template.CSS(pageCSS), template.JS(pageJS) //nolint:gosec // both are files of this package
	p.Synced = s.config.Synced()
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p); err != nil {
		s.config.Log.Error(err, "The debug page could not be made")
		writeError(w, fmt.Errorf("making the page: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'nonce-" + nonce + "'", "style-src 'nonce-" + nonce + "'",
		"form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	}, "; "))
	_, err := body.WriteTo(w)
	s.logWriting(err)
}

// describe says what a page shows: of a large graph the seeds, unless something else is asked for.
func describe(v view, query url.Values, f graph.Filter) page {
	p := page{Path: GraphPath, Kinds: graph.KindNames(), Vertices: len(v.Vertices), Edges: len(v.Edges), First: 1}
	if f == (graph.Filter{}) && len(v.Vertices) > largeGraph && !query.Has("kind") {
		f.Kind = graph.KindSeed
		p.Message = fmt.Sprintf("The graph has %d vertices, so the seeds are shown first. Filter for others.", len(v.Vertices))
	}
	selected := f.Select(v.Vertices)
	if len(selected) == 0 && f.Name != "" && !strings.Contains(f.Name, "*") {
		anywhere := f
		anywhere.Name = "*" + f.Name + "*"
		if selected = anywhere.Select(v.Vertices); len(selected) > 0 {
			p.Message = fmt.Sprintf("Nothing has exactly the name %q; these have it in their names.", f.Name)
		}
	}
	p.Filter, p.Matched = f, len(selected)
	p.JSON, p.DOT = pageURL(f, "format", "json"), pageURL(f, "format", "dot")
	selected = p.turnTo(selected, query.Get("page"))
	p.Listed = v.list(selected)
	p.Drawing = v.draw(selected)
	return p
}

// turnTo picks the vertices of one page of a long list.
func (p *page) turnTo(selected []graph.SnapshotVertex, number string) []graph.SnapshotVertex {
	current, err := strconv.Atoi(number)
	last := max(1, (len(selected)+listedVertices-1)/listedVertices)
	if err != nil || current < 1 {
		current = 1
	}
	current = min(current, last)
	if current > 1 {
		p.Previous = pageURL(p.Filter, "page", strconv.Itoa(current-1))
	}
	if current < last {
		p.Next = pageURL(p.Filter, "page", strconv.Itoa(current+1))
	}
	p.First = (current-1)*listedVertices + 1
	return selected[p.First-1 : min(len(selected), current*listedVertices)]
}

// pageURL is the page with a filter and one more parameter.
func pageURL(f graph.Filter, parameter, value string) string {
	query := url.Values{parameter: {value}}
	// An empty kind asks for all kinds, also of a large graph.
	if f.Kind != 0 {
		query.Set("kind", f.Kind.String())
	} else if parameter == "page" {
		query.Set("kind", "")
	}
	if f.Namespace != "" {
		query.Set("namespace", f.Namespace)
	}
	if f.Name != "" {
		query.Set("name", f.Name)
	}
	return GraphPath + "?" + query.Encode()
}
