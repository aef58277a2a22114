package webhook

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/authz/graphview"
)

// graphTimeout is the timeout for writing a large graph to a slow reader.
const graphTimeout = 2 * time.Minute

// showGraph serves the debug page. It handles one request at a time, because each copies the graph.
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
	nonce := rand.Text()
	var body bytes.Buffer
	var err error
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
	if err != nil {
		writeError(w, err)
		return
	}
	if _, err := body.WriteTo(w); err != nil {
		s.config.Log.V(1).Info("The graph was not read to its end", "error", err.Error())
	}
}
