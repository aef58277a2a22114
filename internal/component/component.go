package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reconciliationTimeout ends a reconciliation that hangs; Gardener's.
	reconciliationTimeout = 3 * time.Minute
	// Requests in a second, and at once, where the client configuration does not say; Gardener's for its gardenlets, the
	// most it has.
	defaultQPS   = 100
	defaultBurst = 130
	// The leases are shorter than Gardener's (15 s, 10 s, 2 s), so that another one is at work 15 s after a leader died: who
	// stands by sees its last renewal up to a period late, waits for as long as the lease, and looks again within a period.
	LeaseDuration = 6 * time.Second
	RenewDeadline = 4 * time.Second
	RetryPeriod   = time.Second
)

// Config is what a component is made of. Name, REST and AddToScheme are required.
type Config struct {
	// Name is for people: it stands in errors.
	Name string
	REST *rest.Config
	// AddToScheme has the types that the component knows.
	AddToScheme runtime.SchemeBuilder
	// Clock is the real one by default. By it, queues of controllers wait.
	Clock clock.WithTicker
	Log   logr.Logger
	// Concurrency is how many objects of a kind are worked on at a time; 5 if 0, as in most of Gardener.
	Concurrency int
	// Uncached is what is read live: a cache would hold all of it all the time, secrets among it.
	Uncached []client.Object
	// ByObject says of kinds that are cached which of their objects are.
	ByObject map[client.Object]cache.ByObject
	// Lease, if set, lets one of several of these components work at a time: the others stand by.
	Lease *client.ObjectKey
}

// Manager is the manager of a component's controllers.
type Manager struct {
	manager.Manager
	name   string
	clock  clock.WithTicker
	stop   context.CancelFunc
	synced atomic.Bool
}

// New makes a manager without controllers. It asks the API server for its API, and starts nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.REST == nil {
		return nil, fmt.Errorf("making the %s: it needs a client configuration", cfg.Name)
	}
	scheme := runtime.NewScheme()
	if err := cfg.AddToScheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("putting together the types that the %s knows: %w", cfg.Name, err)
	}
	o := options(cfg, scheme)
	stop := Stoppable(&o)
	mgr, err := manager.New(Limited(cfg.REST), o)
	if err != nil {
		stop()
		return nil, fmt.Errorf("making the %s: %w", cfg.Name, err)
	}
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	m := &Manager{Manager: mgr, name: cfg.Name, clock: cfg.Clock, stop: stop}
	return m, m.Add(standby(func(context.Context) error { m.synced.Store(true); return nil }))
}

// Limited is a client configuration with limits to the number of requests, where it has none.
func Limited(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.QPS == 0 {
		c.QPS, c.Burst = defaultQPS, defaultBurst
	}
	return c
}

func options(cfg Config, scheme *runtime.Scheme) manager.Options {
	o := manager.Options{
		Scheme: scheme,
		Logger: Quiet(cfg.Log),
		// There are several managers in the process: none of them serves anything.
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		PprofBindAddress:       "0",
		Controller: config.Controller{
			SkipNameValidation:      ptr.To(true),
			MaxConcurrentReconciles: max(cfg.Concurrency, 0),
			ReconciliationTimeout:   reconciliationTimeout,
		},
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cfg.ByObject},
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: cfg.Uncached}},
		GracefulShutdownTimeout: ptr.To[time.Duration](-1), // until all goroutines have ended
	}
	o.Controller.MaxConcurrentReconciles = cmp.Or(o.Controller.MaxConcurrentReconciles, 5)
	if cfg.Lease != nil {
		o.LeaderElection = true
		o.LeaderElectionResourceLock = "leases"
		o.LeaderElectionNamespace, o.LeaderElectionID = cfg.Lease.Namespace, cfg.Lease.Name
		o.LeaderElectionReleaseOnCancel = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(LeaseDuration), ptr.To(RenewDeadline), ptr.To(RetryPeriod)
	}
	return o
}

// Run runs the controllers until the context ends, or the lease is lost (an error). It can be called once.
func (m *Manager) Run(ctx context.Context) error {
	defer m.stop()
	defer context.AfterFunc(ctx, m.stop)()
	err := m.Start(ctx)
	m.GetHTTPClient().CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("running the %s: %w", m.name, err)
	}
	if ctx.Err() == nil {
		return errors.New("the " + m.name + " has ended by itself")
	}
	return nil
}

// HasSynced says whether the component has read what it watches. It may still stand by for another one.
func (m *Manager) HasSynced() bool { return m.synced.Load() }

// standby is run once the caches are there, whether or not its manager leads.
type standby func(context.Context) error

func (f standby) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection is false.
func (standby) NeedLeaderElection() bool { return false }
