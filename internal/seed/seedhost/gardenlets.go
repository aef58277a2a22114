package seedhost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/shootowner"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
	"github.com/gardenlite/gardenlite/internal/seed/resourcemanager"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
	"github.com/gardenlite/gardenlite/internal/version"
)

// Names of the components in each seed, for --controllers. In the status they are followed by the seed's name.
const (
	GardenletName   = "gardenlet"
	providerName    = "provider-local"
	resourceManager = "resource-manager"
	// shootResourceManager runs where resourceManager is left out: only the seed is left to Gardener's program.
	shootResourceManager = "shoot-resource-manager"
)

// StartGardenlets starts the components of each seed, and the gardenlets that were deployed.
func (h *Host) StartGardenlets(ctx context.Context, garden Garden) error {
	if err := h.openGarden(ctx, garden); err != nil {
		return err
	}
	return h.startWork(ctx, garden.Admin, h.beginSeeds)
}

// beginSeeds starts the components of each seed of the landscape.
func (h *Host) beginSeeds(ctx context.Context) error {
	if h.files != nil {
		if err := h.followChanges(ctx); err != nil {
			return err
		}
	}
	if err := h.movePorts(ctx); err != nil {
		return err
	}
	for _, name := range h.seedNames() {
		if err := PrepareSeed(ctx, h.garden.Admin, name); err != nil {
			return err
		}
		if err := h.adopt(h.seeds.cluster(name), gardenletConfiguration(name)); err != nil {
			return err
		}
	}
	return h.reportStoppedSeeds(ctx)
}

// startWork opens the cloud and lets begin start the components of seeds, and starts the gardenlets that were deployed. If other
// processes have the same datastore, it does so once this process has the Lease, which is in the given cluster.
func (h *Host) startWork(ctx context.Context, lease *rest.Config, begin func(context.Context) error) (err error) {
	if h.files == nil {
		return h.beginWork(ctx, begin)
	}
	lock, err := h.newLock(lease)
	if err != nil {
		return err
	}
	h.election, err = startElection(lock, seedsLeaseTimes, h.cfg.Status, func(ctx context.Context) error {
		if err := h.loadFiles(ctx); err != nil {
			return err
		}
		return h.beginWork(ctx, begin)
	}, h.endWork)
	return err
}

func (h *Host) beginWork(ctx context.Context, begin func(context.Context) error) error {
	c, err := h.openCloud()
	if err != nil {
		return err
	}
	w := &work{cloud: c, deployer: newDeployer(h)}
	h.work.Store(w)
	if h.owners != nil {
		if err := c.Adopt(ctx, h.owners); err != nil {
			return err
		}
	}
	h.processes.CleanUp(func(node, _ string) bool { return !isClusterNode(node) && !c.HasHost(node) })
	if err := begin(ctx); err != nil {
		return err
	}
	return w.deployer.resume()
}

// endWork stops the components of the seeds, then the cloud.
func (h *Host) endWork() error {
	w := h.work.Load()
	if w == nil {
		return nil
	}
	err := errors.Join(w.deployer.stop(), w.cloud.Close())
	h.work.Store(nil)
	return err
}

// movePorts gives shoots other ports if other programs have taken theirs, before anything works on the seeds.
func (h *Host) movePorts(ctx context.Context) error {
	for _, name := range h.seedNames() {
		seed, err := newClient(h.seeds.cluster(name).AdminConfig())
		if err != nil {
			return err
		}
		if err := h.shoots.MovePorts(ctx, seed); err != nil {
			return err
		}
	}
	return nil
}

// openGarden prepares the work on seeds of a garden.
func (h *Host) openGarden(ctx context.Context, garden Garden) error {
	h.garden = garden
	if garden.Admin != nil {
		reader, err := newClient(garden.Admin)
		if err != nil {
			return fmt.Errorf("making a client of the garden: %w", err)
		}
		h.owners = shootowner.Reader{Client: reader}
	}
	if h.shared() {
		if err := h.openFiles(ctx); err != nil {
			return err
		}
	}
	h.shoots = h.newShoots() // before the cloud: machines look for their API servers as soon as they boot
	return nil
}

// seedNames returns the names of the seeds whose clusters run.
func (h *Host) seedNames() []string {
	h.seeds.mu.Lock()
	defer h.seeds.mu.Unlock()
	return slices.Sorted(maps.Keys(h.seeds.running))
}

// WaitReady waits until every Seed is ready, with a gardenlet that has renewed its Lease since the given time.
func (h *Host) WaitReady(ctx context.Context, since time.Time) error {
	names := h.seedNames()
	var waiting sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		waiting.Go(func() {
			if errs[i] = h.waitSeedReady(ctx, name, since); errs[i] == nil {
				h.cfg.Status.RecordStep("seed "+name+" ready", h.cfg.Clock.Since(since))
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// StopGardenlets stops what StartGardenlets has started, and the clusters that gardenlets have deployed.
func (h *Host) StopGardenlets() error {
	end := h.endWork
	if h.election != nil {
		end = h.election.stop
	}
	err := end()
	if h.shoots != nil {
		h.shoots.Stop()
	}
	if h.files != nil {
		err = errors.Join(err, h.files.Close())
	}
	return err
}

// unit is a seed that runs in this process: its cluster and its components. Only its worker changes the fields below busy.
type unit struct {
	name string

	mu     sync.Mutex
	wanted func(context.Context) error // what the worker does next
	busy   bool

	record  record
	cluster *seed.Cluster
	stops   []func() // of the components other than the gardenlet
	// stopGardenlet is nil if the gardenlet does not run.
	stopGardenlet func()
}

// record is the stored description of a deployed gardenlet.
type record struct {
	Checksum string                                          `json:"checksum"`
	Config   *gardenletconfigv1alpha1.GardenletConfiguration `json:"config"`
	// Managed says that the cluster of the seed was created for the gardenlet.
	Managed bool `json:"managed,omitempty"`
}

func (h *Host) recordFile(name string) string {
	return filepath.Join(h.cfg.Dir, statedir.GardenletsFolder, name+".json")
}

// adopt runs the components of a seed in a cluster that the landscape has started. If the gardenlet was deployed anew by its
// Gardenlet object, it runs with the configuration of that.
func (h *Host) adopt(cluster *seed.Cluster, configuration *gardenletconfigv1alpha1.GardenletConfiguration) error {
	name := cluster.Name()
	u := &unit{name: name, cluster: cluster, record: record{Config: configuration}}
	if data, err := os.ReadFile(h.recordFile(name)); err == nil {
		u.record.Config = nil // otherwise fields that the stored configuration leaves out would be those of the given one
		if err := json.Unmarshal(data, &u.record); err != nil {
			return fmt.Errorf("reading how the gardenlet of seed %s was deployed, %s: %w; delete the file, and it runs as at first",
				name, h.recordFile(name), err)
		}
	}
	u.record.Config = cmp.Or(u.record.Config, configuration)
	h.work.Load().deployer.add(u)
	return h.startComponents(u)
}

// startComponents starts the components of a unit that do not run yet.
func (h *Host) startComponents(u *unit) error {
	starts := []func(*seed.Cluster) (func(), error){h.startResourceManager, h.startProvider, h.startControlPlanes, h.startSeedLogin}
	for _, start := range starts[len(u.stops):] { // an earlier run may have failed on the way
		stop, err := start(u.cluster)
		if err != nil {
			return err
		}
		u.stops = append(u.stops, stop)
	}
	var err error
	u.stopGardenlet, err = h.startGardenlet(u.cluster, u.record.Config, u.record.Managed)
	return err
}

func (u *unit) endGardenlet() {
	if u.stopGardenlet != nil {
		u.stopGardenlet()
		u.stopGardenlet = nil
	}
}

// halt stops the components of a unit, the gardenlet first.
func (u *unit) halt() {
	u.endGardenlet()
	for _, stop := range u.stops {
		stop()
	}
	u.stops = nil
}

// startInSeed starts a component that works in a seed with a user name of its own, if the component is selected.
func (h *Host) startInSeed(component, user string, cluster *seed.Cluster,
	newComponent func(name string, config *rest.Config) (supervisor.Runner, error)) (stop func(), err error) {
	if !h.cfg.Selects(component) {
		return func() {}, nil
	}
	config, err := cluster.Server().ClientConfig(component, user)
	if err != nil {
		return nil, err
	}
	name := component + " " + cluster.Name()
	h.supervisor.CountForbidden(name, config)
	return h.supervisor.Start(name, func() (supervisor.Runner, error) { return newComponent(name, config) })
}

func (h *Host) startResourceManager(cluster *seed.Cluster) (stop func(), err error) {
	component := resourceManager
	if !h.cfg.Selects(component) {
		component = shootResourceManager
	}
	return h.startInSeed(component, resourcemanager.User, cluster, func(name string, config *rest.Config) (supervisor.Runner, error) {
		return resourcemanager.New(resourcemanager.Config{
			REST: config, Clock: h.cfg.Clock, Log: klog.Background().WithName(name),
			ShootsOnly: component == shootResourceManager,
		})
	})
}

func (h *Host) startProvider(cluster *seed.Cluster) (stop func(), err error) {
	return h.startInSeed(providerName, provider.User, cluster, func(name string, config *rest.Config) (supervisor.Runner, error) {
		return provider.New(provider.Config{
			REST: config, Cloud: h.work.Load().cloud.Account(cluster.Name(), h.owners), APIServer: h.apiServerOf,
			Clock: h.cfg.Clock, Log: klog.Background().WithName(name),
		})
	})
}

// startGardenlet starts a gardenlet. If it has a parent, the parent bootstraps it.
func (h *Host) startGardenlet(cluster *seed.Cluster, configuration *gardenletconfigv1alpha1.GardenletConfiguration,
	hasParent bool) (stop func(), err error) {
	return h.startInSeed(GardenletName, gardenlet.SeedUser, cluster, func(name string, config *rest.Config) (supervisor.Runner, error) {
		cfg := gardenlet.Config{
			Configuration: configuration, Seed: config, Garden: h.garden.At,
			WrapGarden:   func(config *rest.Config) { h.supervisor.CountForbidden(name, config) },
			ChartLayouts: filepath.Join(h.cfg.Dir, statedir.ChartsFolder),
			Version:      version.GardenerVersion, Clock: h.cfg.Clock, Log: klog.Background().WithName(name),
			Deployer: h.work.Load().deployer, Program: h.images.Program,
		}
		if !hasParent {
			cfg.Bootstrap = func(ctx context.Context) ([]byte, error) { return h.garden.Bootstrap(ctx, cluster.Name()) }
		}
		return gardenlet.New(cfg)
	})
}

// waitSeedReady waits until all conditions of a Seed are True that Gardener shows as its readiness, its gardenlet has
// renewed its Lease since the given time (after a restart the conditions are outdated), and gardenctl can target the seed.
func (h *Host) waitSeedReady(ctx context.Context, name string, since time.Time) error {
	garden, err := newClient(h.garden.Admin)
	if err != nil {
		return err
	}
	missing := "it is not registered"
	seed := &gardencorev1beta1.Seed{}
	err = supervisor.WaitFor(ctx, "Seed "+name+" to be ready", func() bool {
		lease := &coordinationv1.Lease{}
		err := garden.Get(ctx, client.ObjectKey{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: name}, lease)
		if err != nil || lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
			missing = "its gardenlet has not renewed its lease"
			return false
		}
		seed = &gardencorev1beta1.Seed{}
		if err := garden.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
			return false
		}
		if missing = notReady(seed); missing == "" {
			login := client.ObjectKey{Namespace: constants.GardenNamespace, Name: name + SeedLoginSuffix}
			if err := garden.Get(ctx, login, &corev1.Secret{}); err != nil {
				missing = "the kubeconfig for gardenctl is not written"
			}
		}
		return missing == ""
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return ownSeedSecrets(ctx, garden, seed)
}

// reportStoppedSeeds reports in the status the Seeds whose clusters this process does not start any more.
func (h *Host) reportStoppedSeeds(ctx context.Context) error {
	garden, err := newClient(h.garden.Admin)
	if err != nil {
		return err
	}
	for _, name := range statedir.LocalSeeds(h.cfg.Dir) {
		if h.find(name) != nil {
			continue
		}
		if garden.Get(ctx, client.ObjectKey{Name: name}, &gardencorev1beta1.Seed{}) == nil {
			h.cfg.Status.SetComponentState(statedir.SeedPrefix+name, control.StateStopped, fmt.Sprintf(
				"there is a Seed %s, but --seeds %d does not start its cluster: \"gardenlite seed add %s\" does; if it is not "+
					"needed any more, \"gardenlite seed remove %s\" then deletes it", name, h.count, name, name))
		}
	}
	return nil
}

// readiness are the conditions that make a Seed ready. The gardenlet's controllers seedlease and seedcare write the first two,
// the controller-manager's seedbackupbucketscheck and seedextensionscheck the others. The last one needs the
// ControllerInstallation of provider-local (manifests/landscape).
var readiness = []gardencorev1beta1.ConditionType{
	gardencorev1beta1.GardenletReady, gardencorev1beta1.SeedSystemComponentsHealthy,
	gardencorev1beta1.SeedBackupBucketsReady, gardencorev1beta1.SeedExtensionsReady,
}

// notReady describes why a Seed is not ready. It returns an empty string if it is.
func notReady(seed *gardencorev1beta1.Seed) string {
	var missing []string
	for _, wanted := range readiness {
		i := slices.IndexFunc(seed.Status.Conditions, func(c gardencorev1beta1.Condition) bool { return c.Type == wanted })
		switch {
		case i < 0:
			missing = append(missing, string(wanted)+" has not been looked at")
		case seed.Status.Conditions[i].Status != gardencorev1beta1.ConditionTrue:
			missing = append(missing, string(wanted)+": "+seed.Status.Conditions[i].Message)
		}
	}
	return strings.Join(missing, "; ")
}
