package admissioncontroller

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	gosync "sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/sync"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
)

// User is who the admission controller is in the garden.
const User = "gardener.cloud:system:admission-controller"

// Config is what an admission controller is made of.
type Config struct {
	// REST reaches the garden as User, or as somebody who may do as much.
	REST *rest.Config
	// Listener is where the webhooks are served. Run closes it.
	Listener net.Listener
	// CertFile and KeyFile are the serving certificate; CAPEM is what its clients trust.
	CertFile, KeyFile string
	CAPEM             []byte
	// ClientCAs are the authorities of the webhooks' clients. If nil, anybody who reaches the listener may ask.
	ClientCAs *x509.CertPool
	// ClientNames are the clients that may ask, by the common names of their certificates; all of ClientCAs if empty. A
	// garden's authority issues certificates to gardenlets and users too, so with that one the API server's client is named.
	ClientNames []string
	// Debug serves the page with the graph: to whom ClientCAs and ClientNames let in, and to who has the DebugToken.
	Debug bool
	// DebugToken, if set, opens the page with the graph in a browser, which has no client certificate: see GraphURL. At
	// least 16 characters, not to be guessed.
	DebugToken string
	Clock      clock.Clock
	Log        logr.Logger
}

// Controller is an admission controller.
type Controller struct {
	cfg        Config
	graph      *graph.Graph
	authorizer *authorizer.Authorizer
	syncer     *sync.Syncer
	server     *webhook.Server
}

// New makes an admission controller; Run starts it.
func New(cfg Config) (*Controller, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	// Decisions on admission read live, for every gardenlet at once: the API server's own fairness is limit enough.
	client := rest.CopyConfig(cfg.REST)
	client.QPS = -1
	reader, err := dynamic.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("making the client of the admission controller: %w", err)
	}
	metrics := webhook.NewMetrics()
	c := &Controller{cfg: cfg, graph: graph.New()}
	c.syncer, err = sync.New(sync.Config{REST: client, Graph: c.graph, Clock: cfg.Clock, Log: cfg.Log, ObserveUpdate: metrics.ObserveUpdate})
	if err != nil {
		return nil, err
	}
	c.authorizer = authorizer.New(c.graph)
	known := access{authorizer: c.authorizer, graph: c.graph, seeds: c.syncer.Seeds, synced: c.syncer.Current}
	c.server, err = webhook.New(webhook.Config{
		Authorizer:  newPatient(authorizer.New(metrics.Measure(c.graph)), c.syncer.Seen, reader),
		Restriction: restriction.New(restriction.NewReader(reader), known, cfg.Clock),
		Graph:       c.graph,
		Synced:      c.syncer.Current,
		Missing:     c.syncer.Missing,
		Listener:    cfg.Listener,
		CertFile:    cfg.CertFile,
		KeyFile:     cfg.KeyFile,
		ClientCAs:   cfg.ClientCAs,
		ClientNames: cfg.ClientNames,
		Debug:       cfg.Debug,
		DebugToken:  cfg.DebugToken,
		Metrics:     metrics,
		Log:         cfg.Log,
	})
	return c, err
}

// Run follows the garden and serves the webhooks until the context ends.
func (c *Controller) Run(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	var group gosync.WaitGroup
	var synced, served error
	group.Go(func() {
		defer cancel()
		synced = c.syncer.Run(ctx)
	})
	group.Go(func() {
		defer cancel()
		served = c.server.Run(ctx)
	})
	group.Wait()
	return errors.Join(synced, served)
}

// HasSynced says whether the graph has had all that the garden has.
func (c *Controller) HasSynced() bool { return c.syncer.HasSynced() }

// Missing says what HasSynced waits for.
func (c *Controller) Missing() string { return c.syncer.Missing() }

// GraphURL is the address of the page with the graph, with the token that opens it in a browser; "" if it is not served.
// Who has it can see the names of all objects in the graph.
func (c *Controller) GraphURL() string {
	if !c.cfg.Debug {
		return ""
	}
	address := url.URL{Scheme: "https", Host: reachable(c.cfg.Listener.Addr()), Path: webhook.GraphPath}
	if c.cfg.DebugToken != "" {
		address.RawQuery = url.Values{webhook.TokenParameter: {c.cfg.DebugToken}}.Encode()
	}
	return address.String()
}

// reachable is an address from this machine, where a listener is on all of its addresses.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}

// Graph is the graph of dependencies.
func (c *Controller) Graph() *graph.Graph { return c.graph }

// Authorizer decides as the webhook does, and explains.
func (c *Controller) Authorizer() *authorizer.Authorizer { return c.authorizer }
