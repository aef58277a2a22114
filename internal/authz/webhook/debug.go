package webhook

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/authz/graphview"
)

// graphTimeout is the timeout for a large graph that is written to a slow reader.
const graphTimeout = 2 * time.Minute

// showGraph serves the debug page.
func (s *Server) showGraph(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(graphTimeout))
	body, err := s.renderGraph(w.Header(), r)
	if err != nil {
		writeError(w, err)
		return
	}
	if _, err := body.WriteTo(w); err != nil {
		s.config.Log.V(1).Info("The graph was not read to its end", "error", err.Error())
	}
}

// renderGraph sets the header of the debug page and returns its body. It renders one page at a time, because each
// copies the graph.
func (s *Server) renderGraph(header http.Header, r *http.Request) (body bytes.Buffer, err error) {
	select {
	case s.rendering <- struct{}{}:
		defer func() { <-s.rendering }()
	case <-r.Context().Done():
		return body, r.Context().Err()
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	query := r.URL.Query()
	nonce := rand.Text()
	switch format := query.Get("format"); format {
	case "", "html":
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", strings.Join([]string{
			"default-src 'none'", "script-src 'nonce-" + nonce + "'", "style-src 'nonce-" + nonce + "'",
			"form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
		}, "; "))
		err = graphview.Page(&body, s.config.Graph.Snapshot(), query, nonce, s.config.Synced())
	case graphview.JSON:
		header.Set("Content-Type", mediaTypeJSON)
		err = graphview.Write(&body, s.config.Graph.Snapshot(), graphview.FilterOf(query), format)
	case graphview.DOT:
		header.Set("Content-Type", "text/vnd.graphviz; charset=utf-8")
		err = graphview.Write(&body, s.config.Graph.Snapshot(), graphview.FilterOf(query), format)
	default:
		err = malformed("%q is no format of the graph; the formats are html, json and dot", format)
	}
	return body, err
}
