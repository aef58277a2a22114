package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// User is the user name of the scheduler in the garden.
const User = "gardener.cloud:system:scheduler"

// Config configures a scheduler. Only REST is required.
type Config struct {
	// REST is the client configuration for the garden, for User or a user with the same rights.
	REST *rest.Config
	// Clock is used for the times in the status of Shoots, and for retries; the real clock if nil.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection ensures that only one of several schedulers of a garden is active at a time.
	LeaderElection bool
	// LeaseDuration, RenewDeadline and RetryPeriod are the settings of the leader election; 15s, 10s and 2s if 0. If
	// the leader is killed, another scheduler takes over after at most LeaseDuration plus RetryPeriod; if the leader
	// stops, immediately.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Strategy is Gardener's default, SameRegion, if empty.
	Strategy Strategy
	// Workers is the number of Shoots that are scheduled concurrently; 5 if 0, as in Gardener.
	Workers int
	// RetryBase and RetryMax are the first and the longest delay of the exponential backoff for a Shoot without an
	// eligible seed, if nothing changes before; 100ms and 1000s if 0.
	RetryBase, RetryMax time.Duration
}

// Scheduler assigns Shoots to seeds.
type Scheduler struct {
	cfg     Config
	scheme  *runtime.Scheme
	manager manager.Manager
	stop    context.CancelFunc
	synced  atomic.Bool
}

// New returns a scheduler; Run starts it. New does not access the garden.
func New(cfg Config) (*Scheduler, error) {
	if cfg.REST == nil {
		return nil, errors.New("the scheduler needs a client configuration for the garden")
	}
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.LeaseDuration = orDefault(cfg.LeaseDuration, 15*time.Second)
	cfg.RenewDeadline = orDefault(cfg.RenewDeadline, 10*time.Second)
	cfg.RetryPeriod = orDefault(cfg.RetryPeriod, 2*time.Second)
	cfg.RetryBase = orDefault(cfg.RetryBase, 100*time.Millisecond)
	cfg.RetryMax = orDefault(cfg.RetryMax, 1000*time.Second)
	cfg.Workers = orDefault(cfg.Workers, 5)
	cfg.Strategy = orDefault(cfg.Strategy, schedulerconfigv1alpha1.Default)
	if !slices.Contains(schedulerconfigv1alpha1.Strategies, cfg.Strategy) {
		return nil, fmt.Errorf("strategy %q is not known to the scheduler; configure one of %v", cfg.Strategy, schedulerconfigv1alpha1.Strategies)
	}
	s := &Scheduler{cfg: cfg, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, gardencorev1beta1.AddToScheme} {
		if err := add(s.scheme); err != nil {
			return nil, fmt.Errorf("making the scheme of the scheduler: %w", err)
		}
	}
	var err error
	s.manager, err = s.newManager()
	return s, err
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Run schedules Shoots until the context ends. If the scheduler loses the leadership, it stands by again. Call Run
// only once.
func (s *Scheduler) Run(ctx context.Context) error {
	for {
		err := s.runManager(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !s.ledUntilNow() {
			return fmt.Errorf("running the scheduler: %w", err)
		}
		s.cfg.Log.Info("The scheduler is no longer the leader and stands by", "reason", err)
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.Clock.After(s.cfg.RetryPeriod):
		}
		if s.manager, err = s.newManager(); err != nil {
			return err
		}
	}
}

// runManager starts the informers of all cached types right away, so that a scheduler that stands by is ready when it
// becomes the leader.
func (s *Scheduler) runManager(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	defer s.synced.Store(false)
	defer s.stop()
	defer context.AfterFunc(ctx, s.stop)()
	for _, object := range cachedTypes() {
		if _, err := s.manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	return s.manager.Start(ctx)
}

// ledUntilNow reports whether the manager that has ended was the leader: in this case it may just have lost the
// leadership.
func (s *Scheduler) ledUntilNow() bool {
	select {
	case <-s.manager.Elected():
		return s.cfg.LeaderElection
	default:
		return false
	}
}

// HasSynced reports whether the caches of the scheduler have synced. It may still stand by while another scheduler is
// the leader.
func (s *Scheduler) HasSynced() bool { return s.synced.Load() }

func cachedTypes() []client.Object {
	return []client.Object{
		&gardencorev1beta1.Shoot{}, &gardencorev1beta1.Seed{}, &gardencorev1beta1.CloudProfile{},
		&gardencorev1beta1.NamespacedCloudProfile{}, &gardencorev1beta1.Project{}, &corev1.ConfigMap{},
	}
}

func (s *Scheduler) newManager() (manager.Manager, error) {
	o := manager.Options{
		Scheme:         s.scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return newMapper(), nil },
		Logger:         component.WithExpectedErrorsAsInfo(s.cfg.Log),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{v1beta1constants.GardenNamespace: {}},
				Label:      labels.SelectorFromSet(labels.Set(regionConfigLabels)),
			}},
		},
		LeaderElection:                s.cfg.LeaderElection,
		LeaderElectionID:              schedulerconfigv1alpha1.SchedulerDefaultLockObjectName,
		LeaderElectionNamespace:       schedulerconfigv1alpha1.SchedulerDefaultLockObjectNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &s.cfg.LeaseDuration,
		RenewDeadline:                 &s.cfg.RenewDeadline,
		RetryPeriod:                   &s.cfg.RetryPeriod,
		GracefulShutdownTimeout:       ptr.To[time.Duration](-1), // until all goroutines have ended
	}
	s.stop = component.Stoppable(&o)
	mgr, err := manager.New(component.WithDefaultRateLimits(s.cfg.REST), o)
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), recorder: mgr.GetEventRecorder("gardener-scheduler"), clock: s.cfg.Clock, strategy: s.cfg.Strategy,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](s.cfg.RetryBase, s.cfg.RetryMax),
	}
	if err := r.addToManager(mgr, s.cfg.Workers, s.cfg.Clock); err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	// The manager starts runnables without leader election after the caches have synced.
	if err := mgr.Add(standby(func(context.Context) error { s.synced.Store(true); return nil })); err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	return mgr, nil
}

// newMapper returns a mapper for the few types of the scheduler, which saves discovery requests to the garden.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds { // a cache that is limited to namespaces also asks for the scope of lists
			mapper.Add(gv.WithKind(kind), scope)
			mapper.Add(gv.WithKind(kind+"List"), scope)
		}
	}
	add(gardencorev1beta1.SchemeGroupVersion, meta.RESTScopeNamespace, "Shoot", "NamespacedCloudProfile")
	add(gardencorev1beta1.SchemeGroupVersion, meta.RESTScopeRoot, "Seed", "CloudProfile", "Project")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "ConfigMap")
	return mapper
}

// standby is a runnable that runs whether or not its manager is the leader.
type standby func(context.Context) error

func (f standby) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }
