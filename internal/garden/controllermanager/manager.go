package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	controllermanagerv1alpha1 "github.com/gardener/gardener/pkg/apis/config/controllermanager/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/project"
)

// User is who the controller-manager is to the garden.
const User = "gardener.cloud:system:controller-manager"

const (
	// reconciliationTimeout ends a reconciliation that hangs; Gardener's.
	reconciliationTimeout = 3 * time.Minute
	// Requests to the garden in a second, and at once, where the client configuration does not say; Gardener's.
	defaultQPS   = 50
	defaultBurst = 100
)

// Config is what a controller-manager is made of. REST is required.
type Config struct {
	REST *rest.Config
	// Clock is the real one by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection lets one of several controller-managers work, by Gardener's lease; another one takes over within
	// 15 s when it dies, at once when it stops.
	LeaderElection bool
	// Controllers selects controllers by name (see Names). All, if nil.
	Controllers func(name string) bool
	// Quotas are the resource quotas of projects: each has the first one whose selector matches its labels.
	Quotas []controllermanagerv1alpha1.QuotaConfiguration
	// ReferenceRetry is after what time it is looked again whether something that is being deleted is still in use,
	// beside whenever one of its users goes: finalizers.DefaultRetry by default.
	ReferenceRetry time.Duration
}

// controller is an entry of the table of controllers.
type controller struct {
	name string
	add  func(manager.Manager, Config) error
}

// controllers are all there are.
func controllers() []controller {
	all := []controller{
		{project.ControllerName, func(mgr manager.Manager, cfg Config) error {
			return (&project.Reconciler{Quotas: cfg.Quotas}).AddToManager(mgr)
		}},
		{csrapprover.ControllerName, func(mgr manager.Manager, cfg Config) error {
			return (&csrapprover.Reconciler{Clock: cfg.Clock}).AddToManager(mgr)
		}},
	}
	for _, kind := range finalizers.Kinds() {
		all = append(all, controller{kind.Name, func(mgr manager.Manager, cfg Config) error {
			return (&finalizers.Reconciler{Kind: kind, Clock: cfg.Clock, Retry: cfg.ReferenceRetry}).AddToManager(mgr)
		}})
	}
	return all
}

// Names are the names of all controllers, which are Gardener's.
func Names() []string {
	var names []string
	for _, c := range controllers() {
		names = append(names, c.name)
	}
	return names
}

// Manager runs the selected controllers.
type Manager struct {
	manager manager.Manager
	http    *http.Client
	synced  atomic.Bool
}

// New makes a controller-manager. It asks the garden for its API, and starts nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.REST == nil {
		return nil, errors.New("a controller-manager needs a client configuration for the garden")
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	restConfig := rest.CopyConfig(cfg.REST)
	if restConfig.QPS == 0 {
		restConfig.QPS, restConfig.Burst = defaultQPS, defaultBurst
	}
	options, err := options(cfg)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(restConfig, options)
	if err != nil {
		return nil, fmt.Errorf("making the controller-manager: %w", err)
	}
	for _, c := range controllers() {
		if cfg.Controllers != nil && !cfg.Controllers(c.name) {
			continue
		}
		if err := c.add(mgr, cfg); err != nil {
			return nil, fmt.Errorf("adding the controller %s to the controller-manager: %w", c.name, err)
		}
	}
	m := &Manager{manager: mgr, http: mgr.GetHTTPClient()}
	if err := mgr.Add(standby(func(context.Context) error { m.synced.Store(true); return nil })); err != nil {
		return nil, fmt.Errorf("making the controller-manager: %w", err)
	}
	return m, nil
}

// HasSynced says whether the controller-manager is running. It may still stand by for another one.
func (m *Manager) HasSynced() bool { return m.synced.Load() }

// standby is run once the caches are there, whether or not its manager leads.
type standby func(context.Context) error

func (f standby) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection is false.
func (standby) NeedLeaderElection() bool { return false }

func options(cfg Config) (manager.Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return manager.Options{}, fmt.Errorf("putting together the types that the controller-manager knows: %w", err)
	}
	election := controllermanagerv1alpha1.ControllerManagerConfiguration{}
	controllermanagerv1alpha1.SetObjectDefaults_ControllerManagerConfiguration(&election)
	lease := election.LeaderElection
	return manager.Options{
		Scheme: scheme,
		Logger: cfg.Log,
		// There are several managers in the process: none of them serves anything.
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		PprofBindAddress:       "0",
		Controller: config.Controller{
			SkipNameValidation:      ptr.To(true),
			MaxConcurrentReconciles: controllermanagerv1alpha1.DefaultControllerConcurrentSyncs,
			ReconciliationTimeout:   reconciliationTimeout,
		},
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
		LeaderElection:                cfg.LeaderElection,
		LeaderElectionResourceLock:    lease.ResourceLock,
		LeaderElectionNamespace:       lease.ResourceNamespace,
		LeaderElectionID:              lease.ResourceName,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(lease.RetryPeriod.Duration),
	}, nil
}

// The lease is somewhat shorter than Gardener's (15 s, 10 s), so that another one is at work 15 s after a leader died.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
)

// uncached is what is read seldom or one by one: a cache would hold all of it all the time, secrets among it.
func uncached() []client.Object {
	return []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ResourceQuota{},
		&corev1beta1.InternalSecret{}, &securityv1alpha1.WorkloadIdentity{},
		&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	}
}

// Run runs the controllers until the context ends, or the lease is lost (an error). It can be called once.
func (m *Manager) Run(ctx context.Context) error {
	err := m.manager.Start(ctx)
	m.http.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("running the controller-manager: %w", err)
	}
	return nil
}
