package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/registration"
)

// SeedUser is who a gardenlet is to its seed.
const SeedUser = "gardener.cloud:system:gardenlet"

// Config is what a gardenlet is made of. SeedName and Seed are required.
type Config struct {
	// SeedName is the name of its Seed.
	SeedName string
	// Template is what it registers in the garden. Without one the Seed has to be there, or to come.
	Template *corev1beta1.SeedTemplate
	// Seed reaches the seed cluster as SeedUser, or as somebody who may do as much.
	Seed *rest.Config
	// Garden, if not nil, is where the garden is and what its authority is. Credentials in it are ignored.
	Garden *rest.Config
	// Bootstrap returns a bootstrap kubeconfig. It is called only when the gardenlet has no valid certificate, and there is
	// none in the seed's Secret garden/gardenlet-kubeconfig-bootstrap.
	Bootstrap func(context.Context) ([]byte, error)
	// Validity is what life is asked for of the client certificate; the signer decides, alone if it is nil.
	Validity *time.Duration
	// WrapGarden, if set, may have a look at what the gardenlet asks the garden.
	WrapGarden func(*rest.Config)
	// Version is Gardener's, whose API it uses.
	Version string
	// Clock is the real one by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection lets one of several gardenlets of a seed work, by Gardener's lease in the seed.
	LeaderElection bool
	// Controllers selects controllers by name (see Names). All, if nil.
	Controllers func(name string) bool
	// LeaseResync is how often the Seed's Lease is renewed; seedlease.DefaultResync by default.
	LeaseResync time.Duration
}

// Gardenlet is the gardenlet of a seed.
type Gardenlet struct {
	cfg Config
}

// New makes a gardenlet. It asks nobody yet.
func New(cfg Config) (*Gardenlet, error) {
	if cfg.SeedName == "" || cfg.Seed == nil {
		return nil, errors.New("a gardenlet needs the name of its seed and a client configuration for it")
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.WrapGarden == nil {
		cfg.WrapGarden = func(*rest.Config) {}
	}
	return &Gardenlet{cfg: cfg}, nil
}

// Run gets the gardenlet's identity and runs its controllers, until the context ends or it cannot go on (an error). It can
// be called once.
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
	config := identity.RESTConfig()
	g.cfg.WrapGarden(config)
	garden, err := g.newGarden(config)
	if err != nil {
		return err
	}
	if err := g.add(mgr, garden, identity); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// obtain returns the identity that is in the seed, or a new one.
func (g *Gardenlet) obtain(ctx context.Context) (*bootstrap.Identity, error) {
	scheme := runtime.NewScheme()
	if err := seedTypes.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("putting together the types of a seed: %w", err)
	}
	store, err := client.New(g.cfg.Seed, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the seed: %w", err)
	}
	return bootstrap.Obtain(ctx, bootstrap.Config{
		SeedName: g.cfg.SeedName, SeedClient: store, NewBootstrap: g.cfg.Bootstrap, Garden: g.cfg.Garden,
		Clock: g.cfg.Clock, Log: g.cfg.Log, Validity: g.cfg.Validity,
	})
}

// add adds everything that runs in the gardenlet to its manager.
func (g *Gardenlet) add(mgr manager.Manager, garden cluster.Cluster, identity *bootstrap.Identity) error {
	if err := mgr.Add(garden); err != nil {
		return fmt.Errorf("adding the garden to the gardenlet: %w", err)
	}
	renewed := make(chan event.GenericEvent, 1)
	identity.Observe(func(time.Time, error) {
		select {
		case renewed <- seed.Occasion(g.cfg.SeedName):
		default: // one that nobody has looked at yet is enough
		}
	})
	for _, run := range []manager.RunnableFunc{identity.Run, g.register(garden)} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("adding to the gardenlet: %w", err)
		}
	}
	host, _ := os.Hostname()
	parts := parts{
		cfg: g.cfg, identity: identity, renewed: renewed,
		gardener: &corev1beta1.Gardener{ID: host, Name: "gardenlet-" + g.cfg.SeedName, Version: g.cfg.Version},
	}
	for _, c := range controllers {
		if g.cfg.Controllers != nil && !g.cfg.Controllers(c.name) {
			continue
		}
		if err := c.new(parts).AddToManager(mgr, garden); err != nil {
			return fmt.Errorf("adding the controller %s to the gardenlet: %w", c.name, err)
		}
	}
	return nil
}

// register registers the Seed, if there is a template for it.
func (g *Gardenlet) register(garden cluster.Cluster) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if g.cfg.Template == nil {
			return nil
		}
		live, err := client.New(garden.GetConfig(), client.Options{HTTPClient: garden.GetHTTPClient(), Scheme: garden.GetScheme(), Mapper: garden.GetRESTMapper()})
		if err != nil {
			return fmt.Errorf("making a client for the garden: %w", err)
		}
		registrar := registration.Registrar{GardenClient: live, Template: g.cfg.Template, Clock: g.cfg.Clock}
		if err := registrar.Register(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	}
}
