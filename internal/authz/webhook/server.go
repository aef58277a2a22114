package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/graphview"
	"github.com/gardenlite/gardenlite/internal/httpserver"
)

// The paths of the server.
const (
	AuthorizationPath = "/webhooks/auth/seed"
	RestrictionPath   = "/webhooks/admission/seedrestriction"
	MetricsPath       = "/metrics"
	HealthPath        = "/healthz"
	ReadyPath         = "/readyz"
	GraphPath         = graphview.Path
)

// Limits on requests. An API server sends objects of at most 3 MiB, and two of them for an update.
const (
	maxHeader             = 64 << 10
	maxAuthorizationBody  = 1 << 20
	maxAdmissionBody      = 8 << 20
	headerTimeout         = 5 * time.Second
	requestTimeout        = 30 * time.Second
	idleTimeout           = 2 * time.Minute
	shutdownTimeout       = 5 * time.Second
	longestAdmission      = 10 * time.Second
	longestReason         = 1024
	mediaTypeJSON         = "application/json"
	concurrentGraphRender = 1
)

// Snapshotter provides the graph for the debug page, like *graph.Graph.
type Snapshotter interface {
	Snapshot() graph.Snapshot
}

// Config is the configuration of a Server.
type Config struct {
	// Authorizer answers SubjectAccessReviews.
	Authorizer authorizer.Authorizer
	// Restriction answers AdmissionReviews, like *restriction.Handler.
	Restriction Decider
	// Webhooks are further admission webhooks by their paths. They answer only while the graph is current.
	Webhooks map[string]Decider
	// Graph is the graph for the debug page.
	Graph Snapshotter
	// Synced reports whether the graph is complete and current. Otherwise, authorizations are not answered.
	Synced func() bool
	// Missing, if set, returns the resources for which Synced is false, for messages.
	Missing func() string

	// Listener accepts the connections; Run closes it.
	Listener net.Listener
	// CertFile and KeyFile are the serving certificate and its key in PEM. They are reloaded when they change.
	CertFile, KeyFile string
	// ClientCAs, if set, are the authorities of clients: then everything but /healthz and /readyz requires a client
	// certificate. Without them, every client that reaches the listener may call the webhooks, and, with Debug, read
	// the names of the objects in the graph.
	ClientCAs *x509.CertPool
	// ClientNames, if set, are the common names of the client certificates that are accepted.
	ClientNames []string
	// MaxAuthorizations and MaxAdmissions limit the concurrent requests; 0 is a default. Further requests get 429.
	MaxAuthorizations, MaxAdmissions int

	// Debug enables the debug page.
	Debug bool
	// DebugToken, if set, gives access to the debug page without a client certificate: as TokenParameter, for which a
	// browser gets a cookie, or as a bearer token. It has at least 16 characters and must not be guessable.
	DebugToken string
	// Metrics are the metrics; new ones if nil.
	Metrics *Metrics
	Log     logr.Logger
}

// Server is the HTTPS server.
type Server struct {
	config      Config
	metrics     *Metrics
	certificate *certificate
	handler     http.Handler
	rendering   chan struct{}
}

// New validates the configuration and returns a server; Run starts it.
func New(config Config) (*Server, error) {
	switch {
	case config.Authorizer == nil:
		return nil, errors.New("the webhook server needs an authorizer")
	case config.Restriction == nil:
		return nil, errors.New("the webhook server needs a restriction")
	case config.Synced == nil:
		return nil, errors.New("the webhook server needs to know whether the graph has synced")
	case config.Listener == nil:
		return nil, errors.New("the webhook server needs a listener")
	case config.Debug && config.Graph == nil:
		return nil, errors.New("the debug page needs a graph")
	case config.DebugToken != "" && len(config.DebugToken) < shortestToken:
		return nil, fmt.Errorf("the debug token has less than %d characters", shortestToken)
	case len(config.ClientNames) > 0 && config.ClientCAs == nil:
		return nil, errors.New("the names of clients mean nothing without their authorities")
	case config.MaxAuthorizations < 0 || config.MaxAdmissions < 0:
		return nil, errors.New("limits on requests must not be negative")
	}
	config.MaxAuthorizations = cmp.Or(config.MaxAuthorizations, defaultAuthorizations)
	config.MaxAdmissions = cmp.Or(config.MaxAdmissions, defaultAdmissions)
	if config.Metrics == nil {
		config.Metrics = NewMetrics()
	}
	s := &Server{
		config: config, metrics: config.Metrics, rendering: make(chan struct{}, concurrentGraphRender),
		certificate: &certificate{certFile: config.CertFile, keyFile: config.KeyFile, log: config.Log},
	}
	if err := s.certificate.load(); err != nil {
		return nil, err
	}
	s.metrics.addSynced(config.Synced)
	s.handler = httpserver.WithEarlyResponse(s.recovered(s.routes()))
	return s, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+AuthorizationPath, s.identified(s.limited(AuthorizationPath, s.config.MaxAuthorizations, s.authorize)))
	mux.HandleFunc("POST "+RestrictionPath, s.identified(s.limited(RestrictionPath, s.config.MaxAdmissions, s.admit(RestrictionPath, s.config.Restriction))))
	for path, decider := range s.config.Webhooks {
		mux.HandleFunc("POST "+path, s.identified(s.limited(path, s.config.MaxAdmissions, s.synced(path, s.admit(path, decider)))))
	}
	mux.HandleFunc("GET "+MetricsPath, s.scraped(s.metrics.handler().ServeHTTP))
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+ReadyPath, s.ready)
	if s.config.Debug {
		mux.HandleFunc("GET "+GraphPath, s.shown(s.showGraph))
	}
	return mux
}

// Run serves until the context ends, waits a few seconds for requests in progress, and returns when all goroutines have
// ended.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(logWriter{s.config.Log}, "", 0),
		TLSConfig:         s.tlsConfig(),
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(s.config.Listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the webhooks on %s: %w", s.config.Listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	if err != nil {
		return fmt.Errorf("stopping the webhook server: %w", err)
	}
	return nil
}

func (s *Server) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get}
	if s.config.ClientCAs != nil {
		// Probes have no certificate, so the handlers require one, not the handshake.
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, s.config.ClientCAs
	}
	return config
}

// certificate is the serving certificate, which is read at each handshake: it may have been renewed. Connections of API
// servers are long-lived, so that is cheap.
type certificate struct {
	certFile, keyFile string
	log               logr.Logger
	loaded            atomic.Pointer[tls.Certificate]
}

// get returns the certificate for a handshake. While the files are being replaced and do not match, it returns the old
// one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := c.load(); err != nil {
		c.log.Error(err, "The old serving certificate stays in use")
	}
	return c.loaded.Load(), nil
}

func (c *certificate) load() error {
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the serving certificate of the webhooks from %s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.loaded.Store(&loaded)
	return nil
}

// recovered turns a panic, which net/http would only log, into a server error: the request fails closed and the server
// continues.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // the very value is compared
				s.config.Log.Error(fmt.Errorf("panic: %v", p), "A webhook request failed", "path", r.URL.Path, "stack", string(debug.Stack()))
				path := r.URL.Path
				if _, known := s.config.Webhooks[path]; known || path == AuthorizationPath || path == RestrictionPath { // others must not become labels
					s.metrics.failure(path, http.StatusInternalServerError)
				}
				writeText(w, http.StatusInternalServerError, "internal error")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if !s.config.Synced() {
		writeText(w, http.StatusServiceUnavailable, s.notReady())
		return
	}
	writeText(w, http.StatusOK, "ok")
}

// synced refuses requests while the graph is not current.
func (s *Server) synced(path string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.config.Synced() {
			s.metrics.failure(path, http.StatusServiceUnavailable)
			writeText(w, http.StatusServiceUnavailable, s.notReady())
			return
		}
		next(w, r)
	}
}

func (s *Server) notReady() string {
	message := "the resource dependency graph is not up to date"
	if s.config.Missing != nil {
		if missing := s.config.Missing(); missing != "" {
			message += "; waiting for " + missing
		}
	}
	return message
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// logWriter logs messages of net/http, mostly about broken connections, at a level that is off by default.
type logWriter struct{ log logr.Logger }

func (l logWriter) Write(line []byte) (int, error) {
	l.log.V(1).Info("HTTP server", "message", string(line))
	return len(line), nil
}

// The default limits of concurrent requests. An API server has 600 requests in flight by default, and watches besides,
// so authorizations are refused only if something is wrong. Admission requests may be large, and read from the garden;
// an API server has 200 mutating requests in flight.
const (
	defaultAuthorizations = 1024
	defaultAdmissions     = 256
)

// limited refuses requests beyond the limit of concurrent ones, before it reads them. The client of the API server then
// retries, within its timeout.
func (s *Server) limited(path string, limit int, next http.HandlerFunc) http.HandlerFunc {
	working := make(chan struct{}, limit)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case working <- struct{}{}:
			defer func() { <-working }()
			next(w, r)
		default:
			s.metrics.failure(path, http.StatusTooManyRequests)
			w.Header().Set("Retry-After", "1")
			writeText(w, http.StatusTooManyRequests, fmt.Sprintf("%d requests are being worked on already", limit))
		}
	}
}
