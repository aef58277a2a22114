package admissioncontroller

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	gosync "sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
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
	// Debug serves the page with the graph.
	Debug bool
	Clock clock.Clock
	Log   logr.Logger
}

// Controller is an admission controller.
type Controller struct {
	cfg        Config
	graph      *graph.Graph
	authorizer *authorizer.Authorizer
	syncer     *sync.Syncer
	server     *webhook.Server
	kube       kubernetes.Interface
}

// New makes an admission controller; Run starts it.
func New(cfg Config) (*Controller, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	// Decisions on admission read live, for every gardenlet at once: the API server's own fairness is limit enough.
	client := rest.CopyConfig(cfg.REST)
	client.QPS = -1
	kube, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("making the client of the admission controller: %w", err)
	}
	reader, err := dynamic.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("making the client of the admission controller: %w", err)
	}
	metrics := webhook.NewMetrics()
	c := &Controller{cfg: cfg, graph: graph.New(), kube: kube}
	c.syncer, err = sync.New(sync.Config{REST: client, Graph: c.graph, Clock: cfg.Clock, Log: cfg.Log, ObserveUpdate: metrics.ObserveUpdate})
	if err != nil {
		return nil, err
	}
	c.authorizer = authorizer.New(c.graph)
	c.server, err = webhook.New(webhook.Config{
		Authorizer:  authorizer.New(metrics.Measure(c.graph)),
		Restriction: restriction.New(restriction.NewReader(reader), cfg.Clock),
		Graph:       c.graph,
		Synced:      c.syncer.HasSynced,
		Missing:     c.syncer.Missing,
		Listener:    cfg.Listener,
		CertFile:    cfg.CertFile,
		KeyFile:     cfg.KeyFile,
		ClientCAs:   cfg.ClientCAs,
		Debug:       cfg.Debug,
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

// HasSynced says whether the graph has all that the garden has; Missing says what it waits for.
func (c *Controller) HasSynced() bool { return c.syncer.HasSynced() }

// Missing says what HasSynced waits for.
func (c *Controller) Missing() string { return c.syncer.Missing() }

// Graph is the graph of dependencies.
func (c *Controller) Graph() *graph.Graph { return c.graph }

// Authorizer decides as the webhook does, and explains.
func (c *Controller) Authorizer() *authorizer.Authorizer { return c.authorizer }
