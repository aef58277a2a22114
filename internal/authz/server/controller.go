package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	admissioncontrollerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/admissioncontroller/v1alpha1"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/gardenwebhooks"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/graphsync"
	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
)

// User is the user of the admission controller in the garden.
const User = "gardener.cloud:system:admission-controller"

// Config is the configuration of an admission controller.
type Config struct {
	// REST is the client configuration for the garden, with User or a user with its permissions.
	REST *rest.Config
	// Listener is the listener of the webhooks. Run closes it.
	Listener net.Listener
	// CertFile and KeyFile are the serving certificate and its key; CAPEM is the authority that clients trust.
	CertFile, KeyFile string
	CAPEM             []byte
	// ClientCAs are the authorities of the webhooks' clients. If nil, everyone who reaches the listener may call the
	// webhooks.
	ClientCAs *x509.CertPool
	// ClientNames are the common names of the client certificates that are accepted; all of ClientCAs if empty. The
	// authority of a garden also signs certificates of gardenlets and users, so the API server's client must be named
	// there.
	ClientNames []string
	// Debug enables the page with the graph, for these clients and for a browser with the token in GraphURL.
	Debug bool
	// Limits are the limits of the sizes and numbers of resources; none if nil.
	Limits *Limits
	// Reads says what gardenlets and extensions may read.
	Reads Reads
	Clock clock.Clock
	Log   logr.Logger
}

// Limits are limits of the sizes and numbers of resources.
type Limits = admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration

// Reads says what gardenlets and extensions may read; "" is DefaultReads.
type Reads = authorizer.Reads

// The values of Reads. The default is Gardener's.
const (
	DefaultReads = authorizer.ReadsSeed
	ReadsAll     = authorizer.ReadsAll
)

// ReadLimits reads limits from a file with a resourceAdmissionConfiguration of Gardener's admission controller.
func ReadLimits(file string) (*Limits, error) { return gardenwebhooks.ReadLimits(file) }

// Controller is an admission controller.
type Controller struct {
	cfg        Config
	token      string
	graph      *graph.Graph
	authorizer *authorizer.Authorizer
	syncer     *graphsync.Syncer
	server     *webhook.Server
}

// New returns an admission controller; Run starts it.
func New(cfg Config) (*Controller, error) {
	cfg.Clock = cmp.Or[clock.Clock](cfg.Clock, clock.RealClock{})
	// Admission reads live objects, for all gardenlets: the API server's priority and fairness is a sufficient limit.
	client := rest.CopyConfig(cfg.REST)
	client.QPS = -1
	reader, err := dynamic.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("making the client of the admission controller: %w", err)
	}
	metrics := webhook.NewMetrics()
	c := &Controller{cfg: cfg, token: rand.Text(), graph: graph.New()}
	c.syncer, err = graphsync.New(
		graphsync.Config{REST: client, Graph: c.graph, Clock: cfg.Clock, Log: cfg.Log, ObserveUpdate: metrics.ObserveUpdate})
	if err != nil {
		return nil, err
	}
	c.authorizer = authorizer.New(metrics.Measure(c.graph), cmp.Or(cfg.Reads, DefaultReads))
	known := access{authorizer: c.authorizer, graph: c.graph, seeds: c.syncer.Seeds, synced: c.syncer.Current}
	handler := restriction.New(restriction.NewReader(reader), known, cfg.Clock)
	webhooks, err := c.webhooks(client, metrics)
	if err != nil {
		return nil, err
	}
	c.server, err = webhook.New(webhook.Config{
		Authorizer:  absent{waitForGraph(c.authorizer, c.syncer.Seen, reader), c.graph.Has, handler.MayDelete},
		Restriction: handler,
		Webhooks:    webhooks,
		Graph:       c.graph,
		Synced:      c.syncer.Current,
		Missing:     c.syncer.Missing,
		Listener:    cfg.Listener,
		CertFile:    cfg.CertFile,
		KeyFile:     cfg.KeyFile,
		ClientCAs:   cfg.ClientCAs,
		ClientNames: cfg.ClientNames,
		Debug:       cfg.Debug,
		DebugToken:  c.token,
		Metrics:     metrics,
		Log:         cfg.Log,
	})
	return c, err
}

// webhooks returns the webhooks besides the restriction by their paths.
func (c *Controller) webhooks(config *rest.Config, metrics *webhook.Metrics) (map[string]webhook.Decider, error) {
	reader, err := gardenwebhooks.NewReader(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the webhooks: %w", err)
	}
	all := map[string]webhook.Decider{}
	for _, w := range gardenwebhooks.All(reader, c.graph, c.cfg.Limits, metrics.Rejected) {
		all[w.Path] = w
	}
	return all, nil
}

// Run syncs the graph and serves the webhooks until the context ends.
func (c *Controller) Run(parent context.Context) error {
	group, ctx := errgroup.WithContext(parent)
	group.Go(func() error { return c.syncer.Run(ctx) })
	group.Go(func() error { return c.server.Run(ctx) })
	return group.Wait()
}

// HasSynced reports whether the graph has synced.
func (c *Controller) HasSynced() bool { return c.syncer.HasSynced() }

// WaitSynced waits until the graph has synced. It periodically calls onWait with the resources for which it waits.
func (c *Controller) WaitSynced(ctx context.Context, onWait func(missing string)) error {
	next := time.Now().Add(3 * time.Second)
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		synced, now := c.HasSynced(), time.Now()
		if !synced && now.After(next) {
			onWait(c.syncer.Missing())
			next = now.Add(30 * time.Second)
		}
		return synced, nil
	})
	if err != nil {
		return fmt.Errorf("the admission controller waits for %s: %w", c.syncer.Missing(), err)
	}
	return nil
}

// GraphURL returns the address of the page with the graph, with the token that opens it in a browser; "" if it is not
// served. With the address, the names of all objects in the graph can be read.
func (c *Controller) GraphURL() string {
	if !c.cfg.Debug {
		return ""
	}
	address := url.URL{Scheme: "https", Host: c.cfg.Listener.Addr().String(), Path: webhook.GraphPath}
	if tcp, ok := c.cfg.Listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address.Host = net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	address.RawQuery = url.Values{webhook.TokenParameter: {c.token}}.Encode()
	return address.String()
}

// Inspector returns an Inspector that explains the decisions of the webhooks. It reads the garden as its administrator.
func (c *Controller) Inspector(admin *rest.Config) (*inspect.Inspector, error) {
	return inspect.New(admin, c.graph, c.authorizer, c.GraphURL())
}
