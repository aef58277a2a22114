package gardenlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupbucket"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupentry"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/bastion"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationrequired"
	gardenletcontroller "github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/gardenlet"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/managedseed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedlease"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shoot"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shootcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shootstate"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/probe"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/registration"
	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
	"github.com/gardenlite/gardenlite/internal/seed/tokenrequestor"
)

// SeedUser is the user name of a gardenlet in its seed.
const SeedUser = "gardener.cloud:system:gardenlet"

// Config configures a gardenlet. Configuration, Seed and WrapGarden are required.
type Config struct {
	// Configuration is Gardener's configuration of a gardenlet. Its seedConfig has the Seed that the gardenlet registers.
	Configuration *gardenletconfigv1alpha1.GardenletConfiguration
	// Seed is the client configuration for the seed cluster, as SeedUser or as another user with the same permissions.
	Seed *rest.Config
	// Garden, if not nil, has the address and CA of the garden. Credentials in it are ignored.
	Garden *rest.Config
	// Bootstrap returns a bootstrap kubeconfig. It is called only when the gardenlet has no valid certificate, and there is
	// none in the seed's Secret garden/gardenlet-kubeconfig-bootstrap.
	Bootstrap func(context.Context) ([]byte, error)
	// WrapGarden can modify the client configuration for the garden, to observe requests.
	WrapGarden func(*rest.Config)
	// Version is the version of Gardener whose API the gardenlet uses.
	Version string
	// ChartLayouts is a folder with OCI layouts of charts, for references that begin with layout://. It may be empty.
	ChartLayouts string
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// Program returns the program of this machine that containers of an image in the seed run, "" if they are simulated. If it
	// is nil, all are.
	Program func(image string) string
	// Deployer runs further gardenlets, for ManagedSeeds and for this seed's Gardenlet. If it is nil, the gardenlet ignores
	// these objects.
	Deployer deployment.Deployer
}

// Gardenlet is the gardenlet of a seed.
type Gardenlet struct {
	cfg      Config
	seedName string
	// registered says that the Seed is registered in the garden.
	registered atomic.Bool
}

// HasSynced reports whether the gardenlet has its identity, and its Seed is registered in the garden.
func (g *Gardenlet) HasSynced() bool { return g.registered.Load() }

// New creates a gardenlet. It sends no requests.
func New(cfg Config) (*Gardenlet, error) {
	if cfg.Configuration == nil || cfg.Configuration.SeedConfig == nil || cfg.Configuration.SeedConfig.Name == "" || cfg.Seed == nil {
		return nil, errors.New("a gardenlet needs a configuration with its seed (seedConfig.metadata.name), and a client configuration for that")
	}
	cfg.Configuration = cfg.Configuration.DeepCopy()
	gardenletconfigv1alpha1.SetObjectDefaults_GardenletConfiguration(cfg.Configuration)
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	if cfg.Program == nil {
		cfg.Program = func(string) string { return "" }
	}
	return &Gardenlet{cfg: cfg, seedName: cfg.Configuration.SeedConfig.Name}, nil
}

// Run gets the gardenlet's identity and runs its controllers, until the context ends or an error occurs. It must be called
// only once.
func (g *Gardenlet) Run(ctx context.Context) error {
	identity, err := g.obtain(ctx)
	if err != nil {
		return err
	}
	defer identity.Close()
	mgr, err := g.newManager()
	if err != nil {
		return err
	}
	garden, err := g.newGarden(identity)
	if apierrors.IsUnauthorized(err) {
		if err := identity.BootstrapAgain(ctx, err); err != nil {
			return err
		}
		garden, err = g.newGarden(identity)
	}
	if err != nil {
		return err
	}
	if err := g.add(mgr, garden, identity); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// obtain returns the identity that is stored in the seed, or gets a new one.
func (g *Gardenlet) obtain(ctx context.Context) (*bootstrap.Identity, error) {
	scheme := runtime.NewScheme()
	if err := seedTypes.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("putting together the types of a seed: %w", err)
	}
	store, err := client.New(g.cfg.Seed, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the seed: %w", err)
	}
	config := bootstrap.Config{
		SeedName: g.seedName, SeedClient: store, NewBootstrap: g.cfg.Bootstrap, Garden: g.cfg.Garden, Clock: g.cfg.Clock, Log: g.cfg.Log,
	}
	if connection := g.cfg.Configuration.GardenClientConnection; connection != nil && connection.KubeconfigValidity != nil {
		validity := connection.KubeconfigValidity
		if validity.Validity != nil {
			config.Validity = &validity.Validity.Duration
		}
		config.RotateFrom, config.RotateTo = rotationRange(validity)
	}
	return bootstrap.Obtain(ctx, config)
}

// rotationRange returns the fractions of a certificate's life between which it is rotated. Gardener's defaults of 70 and 90 %
// cannot be told from a configuration with the same values: they are replaced by those of bootstrap, for which it returns 0.
func rotationRange(validity *gardenletconfigv1alpha1.KubeconfigValidity) (from, to float64) {
	minimum, maximum := ptr.Deref(validity.AutoRotationJitterPercentageMin, 70), ptr.Deref(validity.AutoRotationJitterPercentageMax, 90)
	if minimum == 70 && maximum == 90 {
		return 0, 0
	}
	return float64(minimum) / 100, float64(maximum) / 100
}

// add adds all components of the gardenlet to its manager.
func (g *Gardenlet) add(mgr manager.Manager, garden cluster.Cluster, identity *bootstrap.Identity) error {
	if err := mgr.Add(garden); err != nil {
		return fmt.Errorf("adding the garden to the gardenlet: %w", err)
	}
	renewed := make(chan event.GenericEvent, 1)
	identity.Observe(g.rotationObserver(garden.GetClient(), garden.GetEventRecorder("gardenlet"), renewed))
	for _, run := range []manager.RunnableFunc{identity.Run, g.register(garden)} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("adding to the gardenlet: %w", err)
		}
	}
	host, _ := os.Hostname()
	server, err := probe.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	parts := parts{
		Base: controllerutils.Base{
			GardenClient: garden.GetClient(), GardenReader: garden.GetAPIReader(), SeedClient: mgr.GetClient(), SeedReader: mgr.GetAPIReader(),
			Clock: g.cfg.Clock, SeedName: g.seedName,
		},
		cfg: g.cfg, identity: identity, server: server, renewed: renewed,
		gardener: &corev1beta1.Gardener{ID: host, Name: "gardenlet-" + g.seedName, Version: g.cfg.Version},
	}
	for _, c := range controllers {
		parts.Recorder = garden.GetEventRecorder(c.name + "-controller")
		reconciler := c.new(parts)
		if reconciler == nil {
			continue
		}
		if err := reconciler.AddToManager(mgr, garden); err != nil {
			return fmt.Errorf("adding the controller %s to the gardenlet: %w", c.name, err)
		}
	}
	return nil
}

// rotationObserver returns a function that, after each rotation of the gardenlet's certificate, triggers a reconciliation of
// the Seed, and writes an event for it if the rotation has failed.
func (g *Gardenlet) rotationObserver(garden client.Reader, recorder events.EventRecorder,
	renewed chan<- event.GenericEvent) func(time.Time, error) {
	return func(_ time.Time, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the cache may not have synced yet
		defer cancel()
		object := &corev1beta1.Seed{}
		if err != nil && garden.Get(ctx, client.ObjectKey{Name: g.seedName}, object) == nil {
			recorder.Eventf(object, nil, corev1.EventTypeWarning, bootstrap.EventRotationFailed, corev1beta1.EventActionReconcile, "%s", err)
		}
		select {
		case renewed <- seed.RenewedEvent(g.seedName):
		default: // one pending event is enough
		}
	}
}

// register returns a runnable that registers the Seed.
func (g *Gardenlet) register(garden cluster.Cluster) manager.RunnableFunc {
	return func(ctx context.Context) error {
		live, err := client.New(garden.GetConfig(),
			client.Options{HTTPClient: garden.GetHTTPClient(), Scheme: garden.GetScheme(), Mapper: garden.GetRESTMapper()})
		if err != nil {
			return fmt.Errorf("making a client for the garden: %w", err)
		}
		registrar := registration.Registrar{GardenClient: live, Template: &g.cfg.Configuration.SeedConfig.SeedTemplate, Clock: g.cfg.Clock}
		if err := registrar.Register(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		g.registered.Store(true)
		return nil
	}
}

// parts are the parameters of the controllers.
type parts struct {
	controllerutils.Base
	cfg      Config
	identity *bootstrap.Identity
	server   *probe.Server // of the seed
	renewed  <-chan event.GenericEvent
	gardener *corev1beta1.Gardener
}

// progressReportPeriod is the time between two reports of the progress of a Shoot's flow, if the configuration has none.
const progressReportPeriod = 5 * time.Second

// addable is a controller of the gardenlet.
type addable interface {
	AddToManager(mgr manager.Manager, garden cluster.Cluster) error
}

// controllers lists all controllers, with Gardener's names. The function new returns nil if the controller is disabled, or
// if the gardenlet lacks what it needs.
var controllers = []struct {
	name string
	new  func(parts) addable
}{
	{seed.ControllerName, func(p parts) addable {
		return &seed.Reconciler{
			Base: p.Base, Identity: p.gardener, Version: p.server.Version,
			CertificateExpiration: p.identity.Expiration, Renewed: p.renewed, Resources: p.cfg.Configuration.Resources,
		}
	}},
	{seedlease.ControllerName, func(p parts) addable {
		return &seedlease.Reconciler{Base: p.Base, Check: p.server.Healthy,
			Resync: time.Duration(*p.cfg.Configuration.Controllers.Seed.LeaseResyncSeconds) * time.Second}
	}},
	{seedcare.ControllerName, func(p parts) addable {
		return &seedcare.Reconciler{Base: p.Base, Server: p.server}
	}},
	{backupbucket.ControllerName, func(p parts) addable {
		return &backupbucket.Reconciler{Base: p.Base}
	}},
	{backupentry.ControllerName, func(p parts) addable {
		c := p.cfg.Configuration.Controllers.BackupEntry
		return &backupentry.Reconciler{Base: p.Base,
			DeletionGracePeriod:              time.Duration(*c.DeletionGracePeriodHours) * time.Hour,
			DeletionGracePeriodShootPurposes: c.DeletionGracePeriodShootPurposes}
	}},
	{bastion.ControllerName, func(p parts) addable {
		return &bastion.Reconciler{Base: p.Base,
			ConcurrentSyncs: *p.cfg.Configuration.Controllers.Bastion.ConcurrentSyncs}
	}},
	{controllerinstallation.ControllerName, func(p parts) addable {
		return &controllerinstallation.Reconciler{
			Base: p.Base, GardenConfig: p.identity.Garden(),
			Version: p.cfg.Version, FeatureGates: p.cfg.Configuration.FeatureGates, ChartLayouts: p.cfg.ChartLayouts,
		}
	}},
	{controllerinstallationcare.ControllerName, func(p parts) addable {
		return &controllerinstallationcare.Reconciler{Base: p.Base}
	}},
	{controllerinstallationrequired.ControllerName, func(p parts) addable {
		return &controllerinstallationrequired.Reconciler{Base: p.Base}
	}},
	{shoot.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.Shoot
		return &shoot.Reconciler{
			Base: p.Base, Identity: p.gardener, ConcurrentSyncs: *config.ConcurrentSyncs, Program: p.cfg.Program,
			SyncPeriod: config.SyncPeriod.Duration, RetryDuration: config.RetryDuration.Duration,
			ProgressReportPeriod: ptr.Deref(config.ProgressReportPeriod, metav1.Duration{Duration: progressReportPeriod}).Duration,
		}
	}},
	{shootcare.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootCare
		thresholds := map[corev1beta1.ConditionType]time.Duration{}
		for _, t := range config.ConditionThresholds {
			thresholds[corev1beta1.ConditionType(t.Type)] = t.Duration.Duration
		}
		return &shootcare.Reconciler{
			Base: p.Base, Shoots: &shootaccess.Cache{Seed: p.SeedReader, Clock: p.Clock},
			ConcurrentSyncs: *config.ConcurrentSyncs, SyncPeriod: config.SyncPeriod.Duration,
			Thresholds: thresholds, ProgressingThreshold: config.ManagedResourceProgressingThreshold,
		}
	}},
	{shootstate.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootState
		if *config.ConcurrentSyncs == 0 { // as in Gardener, 0 disables it
			return nil
		}
		return &shootstate.Reconciler{Base: p.Base, ConcurrentSyncs: *config.ConcurrentSyncs,
			SyncPeriod: config.SyncPeriod.Duration}
	}},
	{tokenrequestor.ControllerName, func(p parts) addable {
		target := &tokenrequestor.Target{Client: p.GardenClient, Reader: p.GardenReader, Config: p.identity.Garden()}
		return &tokenrequestor.Reconciler{
			SeedClient: p.SeedClient, SeedReader: p.SeedReader, Clock: p.Clock, Class: resourcesv1alpha1.ResourceManagerClassGarden,
			Namespace: registration.NamespaceOf(p.SeedName),
			Target:    func(context.Context, *corev1.Secret) (*tokenrequestor.Target, error) { return target, nil },
		}
	}},
	{managedseed.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		config := p.cfg.Configuration.Controllers.ManagedSeed
		return &managedseed.Reconciler{
			Base: p.Base, GardenConfig: p.identity.Garden(), Config: p.cfg.Configuration, Deployer: p.cfg.Deployer,
			SyncPeriod: config.SyncPeriod.Duration, WaitSyncPeriod: config.WaitSyncPeriod.Duration,
		}
	}},
	{gardenletcontroller.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		return &gardenletcontroller.Reconciler{Base: p.Base, GardenConfig: p.identity.Garden(),
			Deployer: p.cfg.Deployer}
	}},
}
