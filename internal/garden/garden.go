// Package garden runs the garden cluster: a control plane that serves the Gardener API, with the objects that
// Gardener installs into it (namespaces, RBAC) and the Kubernetes controllers it needs. It may import controlplane
// and the packages below garden.
package garden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/garden/admission"
	"github.com/gardenlite/gardenlite/internal/garden/apiserver"
	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/garden/defaultobjects"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/revocation"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/node/clusternodes"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/version"
)

// Config configures a garden.
type Config struct {
	// Config is that of its control plane. Start sets its Name, what concerns Pods and Nodes, and what only a garden has.
	controlplane.Config
	// Bare creates only what gardener-apiserver creates by itself.
	Bare bool
	// Admission selects the admission plugins, Kubernetes' among them.
	Admission admission.Selection
	// Controllers selects controllers: "*", "name", "-name".
	Controllers []string
	// Programs are the components that are left to Gardener's programs, which get the roles that they have in Gardener.
	Programs []string
	// Kubeconfigs are the settings of the subresources adminkubeconfig and viewerkubeconfig of Shoots.
	Kubeconfigs shootkubeconfig.Options
	// BastionTimeToLive is passed on to registry.Config.
	BastionTimeToLive time.Duration
	// Region and Zones are those of the Nodes on which Pods run.
	Region string
	Zones  []string
	// Processes runs the containers whose images are mapped to programs; nil if all Pods are simulated.
	Processes *process.Runner
}

// clusterName is the name of the garden cluster and of its Node.
const clusterName = "garden"

// The user and group of the garden's administrator, for whom the landscape's kubeconfig is issued.
const (
	adminUser  = "gardenlite:admin"
	adminGroup = "system:masters"
)

// watchReview is the time after which a watch is authorized again: the SeedAuthorizer allows a watch only while the
// object is related to the seed, and the object may move to another seed. With this value, such a watch ends within a
// second.
const watchReview = 900 * time.Millisecond

// Garden is a running garden.
type Garden struct {
	server *controlplane.Server
	admin  *rest.Config

	controllers *kubecontrollers.Running
	nodes       clusternodes.Nodes

	following     sync.WaitGroup
	stopFollowing func()
}

// Start starts a garden and returns when it is ready. The context covers the start only. If it fails, everything is
// stopped again.
func Start(ctx context.Context, cfg Config) (*Garden, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	if cfg.OnPhase == nil {
		cfg.OnPhase = func(string, time.Duration) {}
	}
	deleted := revocation.New(cfg.Clock)
	g := &Garden{}
	var err error
	plane := cfg.Config
	plane.Name, plane.DialNode, plane.PrivateNodes, plane.ServesPod = clusterName, g.nodes.Dial, true, cfg.Processes.ListensAt
	plane.WatchReview, plane.Authenticator, plane.Revocation = watchReview, deleted.Authenticator, deleted.Revocation
	plane.Extension = apiserver.Extension{SeedDeleted: seedDeleted(deleted), Clock: cfg.Clock, PKIDir: cfg.PKIDir,
		Kubeconfigs: cfg.Kubeconfigs, BastionTimeToLive: cfg.BastionTimeToLive, Admission: cfg.Admission}
	kubernetes := cfg.Admission.Kubernetes()
	plane.EnableAdmission, plane.DisableAdmission = kubernetes.Enable, kubernetes.Disable
	g.server, err = controlplane.Start(ctx, plane)
	if err != nil {
		return nil, err
	}
	if err := g.setUp(ctx, cfg, deleted); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

// seedDeleted returns a function that revokes what the gardenlet of a deleted Seed has: its certificates, and the bootstrap
// tokens with which it would get another one.
func seedDeleted(deleted *revocation.DeletedSeeds) func(kubernetes.Interface, string) {
	return func(client kubernetes.Interface, seed string) {
		deleted.RecordDeletion(client, seed)
		ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
		defer cancel()
		if err := bootstraptoken.Delete(ctx, client, seed); err != nil {
			klog.Background().Error(err, "The bootstrap tokens of a deleted Seed stay valid until they expire", "seed", seed)
		}
	}
}

// tokenTimeout limits how long the deletion of a Seed waits for the deletion of its bootstrap tokens.
const tokenTimeout = 10 * time.Second

// setUp starts the controllers, creates the default objects, and waits until the deleted Seeds are known.
func (g *Garden) setUp(ctx context.Context, cfg Config, deleted *revocation.DeletedSeeds) error {
	begin := cfg.Clock.Now()
	if err := g.startControllers(cfg); err != nil {
		return fmt.Errorf("starting the controllers: %w", err)
	}
	g.nodes.StartWithFirstPod(g.server, clusternodes.Config{
		Name: clusterName, Region: cfg.Region, Zones: cfg.Zones, Processes: cfg.Processes, Clock: cfg.Clock,
	})
	var err error
	if g.admin, err = g.server.ClientConfig("admin", adminUser, adminGroup); err != nil {
		return err
	}
	create := defaultobjects.EnsureGardenObjects
	if cfg.Bare {
		create = defaultobjects.EnsureBareObjects
	}
	if err := create(ctx, g.admin, defaultobjects.Info{GardenerVersion: version.GardenerVersion, Programs: cfg.Programs}); err != nil {
		return fmt.Errorf("setting up the garden: %w", err)
	}
	cfg.OnPhase("namespaces, RBAC, controllers", cfg.Clock.Since(begin))
	return g.followDeletedSeeds(ctx, deleted)
}

// followDeletedSeeds waits until the revoked certificates of gardenlets are known. They are kept up to date until
// Stop.
func (g *Garden) followDeletedSeeds(ctx context.Context, deleted *revocation.DeletedSeeds) error {
	client, err := kubernetes.NewForConfig(g.admin)
	if err != nil {
		return fmt.Errorf("making the client that reads which Seeds were deleted: %w", err)
	}
	following, stop := context.WithCancel(context.Background())
	g.stopFollowing = sync.OnceFunc(func() { stop(); g.following.Wait() })
	loaded := make(chan struct{})
	g.following.Go(func() { deleted.Watch(following, client, func() { close(loaded) }) })
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reading which Seeds were deleted: %w", context.Cause(ctx))
	}
}

func (g *Garden) startControllers(cfg Config) (err error) {
	g.controllers, err = g.server.StartControllers(kubecontrollers.Config{
		Select:       cfg.Controllers,
		Workloads:    true,
		PodCIDR:      clusternodes.PodNetwork,
		NodeMask:     clusternodes.Mask,
		DeleteVolume: func(volume types.UID) error { return cfg.Processes.DeleteVolume(clusterName, volume) },
	})
	return err
}

// Server returns the garden's control plane.
func (g *Garden) Server() *controlplane.Server { return g.server }

// AdminConfig returns a copy of the client configuration of the administrator.
func (g *Garden) AdminConfig() *rest.Config { return rest.CopyConfig(g.admin) }

// AdminKubeconfig returns the administrator's kubeconfig, with one context of the given name.
func (g *Garden) AdminKubeconfig(contextName string) ([]byte, error) {
	config, err := g.server.ClientConfig("admin", adminUser, adminGroup)
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate and key: %w", err)
	}
	return clientcmd.Write(*controlplane.Kubeconfig(contextName, config.Host, g.server.PKI().CAPEM(), config.CertData, config.KeyData))
}

// ApplyDefaultLandscape creates the initial objects of a new landscape. It does so only once.
func (g *Garden) ApplyDefaultLandscape(ctx context.Context) error {
	return defaultobjects.DefaultLandscape(ctx, g.admin)
}

// CheckManifests returns an error that names each manifest of a file or directory that ApplyPath could not read.
func CheckManifests(path string) error { return manifest.Check(path) }

// ApplyPath applies the manifests of a file or directory.
func (g *Garden) ApplyPath(ctx context.Context, path string) error {
	applier, err := manifest.NewApplier(g.admin)
	if err != nil {
		return err
	}
	return applier.Path(ctx, path)
}

// Done returns a channel that is closed when the garden has ended; Err returns the reason.
func (g *Garden) Done() <-chan struct{} { return g.server.Done() }

// Err returns the error with which the garden ended. Call it after Done is closed.
func (g *Garden) Err() error { return g.server.Err() }

// Stop stops the controllers, then the server, and waits for both.
func (g *Garden) Stop() error {
	if g.stopFollowing != nil {
		g.stopFollowing()
	}
	g.nodes.Stop()
	g.controllers.Stop()
	return g.server.Stop()
}
