package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	maxConnections = 64
	maxText        = 200
)

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{{.Title}}</title></head>
<body>
<h1>{{.Title}}</h1>
<p>Served by the WordPress stack {{.Version}}</p>
{{- if .Theme}}
<p>Theme: {{.Theme}}</p>
{{- end}}
<p>Database: {{.Endpoint}}</p>
</body>
</html>
`))

// site is what a page shows.
type site struct{ Title, Theme, Endpoint, Version string }

// sites are the pages by the names of their instances, and their server.
type sites struct {
	version  string
	listener net.Listener
	mu       sync.RWMutex
	pages    map[string][]byte
}

// newSites listens on a free port of 127.0.0.1.
func newSites(version string) (*sites, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &sites{version: version, listener: netutil.LimitListener(listener, maxConnections), pages: map[string][]byte{}}, nil
}

// Start serves until the context ends.
func (s *sites) Start(ctx context.Context) error {
	server := &http.Server{Handler: s, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		IdleTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serve adds or replaces the page of a site, and returns its address.
func (s *sites) serve(name string, of site) string {
	of.Version = s.version
	of.Title = cmp.Or(of.Title, name)
	if s.version == "0.1" {
		of.Theme = ""
	}
	of.Title, of.Theme = cut(of.Title), cut(of.Theme)
	var content bytes.Buffer
	_ = page.Execute(&content, of) // a buffer and three strings do not fail
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[name] = content.Bytes()
	return "http://" + s.listener.Addr().String() + "/" + name
}

func (s *sites) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, name)
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}

// ServeHTTP answers with the page of a site. It refuses every Host but its own address, so that a web page of
// another server whose name resolves to 127.0.0.1 cannot read anything.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != s.listener.Addr().String() {
		http.Error(w, "unknown host", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	s.mu.RLock()
	content, found := s.pages[strings.TrimPrefix(r.URL.Path, "/")]
	s.mu.RUnlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(content)
}
