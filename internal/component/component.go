package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

const (
	// reconciliationTimeout is the time after which a reconciliation is cancelled, as in Gardener.
	reconciliationTimeout = 3 * time.Minute
	// defaultQPS and defaultBurst apply if the client configuration has no limits. They are the limits of Gardener's
	// gardenlets, the highest that Gardener uses.
	defaultQPS   = 100
	defaultBurst = 130
	// LeaseDuration, RenewDeadline and RetryPeriod are Gardener's. A standby takes over within 20 s after the leader died:
	// it sees the leader's last renewal up to one RetryPeriod late, waits for LeaseDuration, and tries again within one
	// RetryPeriod.
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 2 * time.Second
)

// Config is the configuration of a component. Name, REST and AddToScheme are required.
type Config struct {
	// Name is the name of the component in error messages.
	Name string
	REST *rest.Config
	// AddToScheme registers the API types that the component uses.
	AddToScheme runtime.SchemeBuilder
	// Clock is the clock on which the queues of controllers wait. The default is the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// Concurrency is the number of objects that each controller reconciles at once; 5 if 0, as in most of Gardener.
	Concurrency int
	// Uncached are the kinds that are read from the API server: a cache would hold all objects, such as all Secrets.
	Uncached []client.Object
	// ByObject restricts which objects of a kind are cached.
	ByObject map[client.Object]cache.ByObject
	// MapperProvider, if set, replaces the discovery of the API server's resources.
	MapperProvider func(*rest.Config, *http.Client) (meta.RESTMapper, error)
	// Lease, if set, is the lease for leader election: of several such components, only one is active.
	Lease *client.ObjectKey
}

// Manager is the manager of a component's controllers.
type Manager struct {
	manager.Manager
	name   string
	clock  clock.WithTicker
	stop   context.CancelFunc
	synced atomic.Bool
	// starting is the number of controllers that have not listed all objects yet. begun is called when there is none left.
	starting atomic.Int64
	begun    func()
}

// New returns a manager without controllers. It discovers the API of the API server, and starts nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.REST == nil {
		return nil, fmt.Errorf("making the %s: it needs a client configuration", cfg.Name)
	}
	scheme := runtime.NewScheme()
	if err := cfg.AddToScheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("putting together the types that the %s knows: %w", cfg.Name, err)
	}
	o := options(cfg, scheme)
	base, stop := context.WithCancel(context.Background())
	o.BaseContext = func() context.Context { return base }
	mgr, err := manager.New(WithDefaultRateLimits(cfg.REST), o)
	if err != nil {
		stop()
		return nil, fmt.Errorf("making the %s: %w", cfg.Name, err)
	}
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	m := &Manager{Manager: mgr, name: cfg.Name, clock: cfg.Clock, stop: stop}
	m.begun = sync.OnceFunc(func() { landscapeclock.End(m.clock) })
	return m, m.Add(nonLeaderRunnable(func(context.Context) error { m.synced.Store(true); return nil }))
}

// WithDefaultRateLimits returns a copy of a client configuration, with the default QPS and burst if it has none.
func WithDefaultRateLimits(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.QPS == 0 {
		c.QPS, c.Burst = defaultQPS, defaultBurst
	}
	return c
}

func options(cfg Config, scheme *runtime.Scheme) manager.Options {
	o := manager.Options{
		Scheme:         scheme,
		MapperProvider: cfg.MapperProvider,
		Logger:         WithExpectedErrorsAsInfo(cfg.Log),
		// Several managers run in this process, so none of them listens on a port.
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		PprofBindAddress:       "0",
		Controller: config.Controller{
			SkipNameValidation:      ptr.To(true),
			MaxConcurrentReconciles: cmp.Or(cfg.Concurrency, 5),
			ReconciliationTimeout:   reconciliationTimeout,
		},
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cfg.ByObject},
		NewCache:                NewCache,
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: cfg.Uncached}},
		GracefulShutdownTimeout: ptr.To[time.Duration](-1), // until all goroutines have ended
	}
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
	landscapeclock.Begin(m.clock) // what is due is known when all controllers have begun
	defer m.begun()
	if m.starting.Load() == 0 {
		m.begun()
	}
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

// HasSynced reports whether the caches of the component have synced. The component may still wait for leadership.
func (m *Manager) HasSynced() bool { return m.synced.Load() }

// nonLeaderRunnable is a Runnable that runs after the caches have synced, whether or not the manager is the leader.
type nonLeaderRunnable func(context.Context) error

func (f nonLeaderRunnable) Start(ctx context.Context) error { return f(ctx) }

func (nonLeaderRunnable) NeedLeaderElection() bool { return false }

// NewCache returns a cache that also reports that it has synced if the context of the waiting caller has ended. With it, a
// manager ends also while it waits for its first lists: controller-runtime (v0.24) keeps waiting, in a busy loop, for a cache
// that reports that it did not sync.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	return &cancelableCache{c}, nil
}

type cancelableCache struct{ cache.Cache }

// WaitForCacheSync reports whether the cache has synced or the context has ended.
func (g *cancelableCache) WaitForCacheSync(ctx context.Context) bool {
	return g.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}
