package seedhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// deployer runs what gardenlets deploy: gardenlets, and clusters for their seeds.
type deployer struct {
	h *Host

	mu      sync.Mutex
	units   map[string]*unit
	stopped bool
	working sync.WaitGroup
}

// record is what is kept of a deployed gardenlet.
type record struct {
	Checksum string                                          `json:"checksum"`
	Config   *gardenletconfigv1alpha1.GardenletConfiguration `json:"config"`
	// Managed says that the seed's cluster is there because of the gardenlet.
	Managed bool `json:"managed,omitempty"`
}

// unit is a seed that runs in this process: its cluster, and what runs in it. Only its worker changes what is below wanted.
type unit struct {
	name string

	mu     sync.Mutex
	wanted func(context.Context) error // what the worker does next
	busy   bool

	record  record
	cluster *seed.Cluster
	stops   []func() // of the components beside the gardenlet
	// stopGardenlet is nil if it does not run.
	stopGardenlet func()
}

func newDeployer(h *Host) *deployer {
	h.shoots = h.newShoots()
	return &deployer{h: h, units: map[string]*unit{}}
}

func (d *deployer) file(name string) string {
	return filepath.Join(d.h.cfg.Dir, statedir.GardenletsFolder, name+".json")
}

// adopt runs in a cluster that the landscape has started what runs in each seed. Where the gardenlet was deployed anew by
// its Gardenlet object, it runs as that says.
func (d *deployer) adopt(cluster *seed.Cluster, configuration *gardenletconfigv1alpha1.GardenletConfiguration) error {
	name := cluster.Name()
	u := &unit{name: name, cluster: cluster, record: record{Config: configuration}}
	if data, err := os.ReadFile(d.file(name)); err == nil {
		if err := json.Unmarshal(data, &u.record); err != nil {
			return fmt.Errorf("reading how the gardenlet of seed %s was deployed, %s: %w; delete the file, and it runs as at first",
				name, d.file(name), err)
		}
	}
	d.mu.Lock()
	d.units[name] = u
	d.mu.Unlock()
	return d.run(u)
}

// resume runs again what was deployed before the process ended, in clusters of its own.
func (d *deployer) resume() error {
	entries, err := os.ReadDir(filepath.Join(d.h.cfg.Dir, statedir.GardenletsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what gardenlets were deployed: %w", err)
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || d.find(name) != nil {
			continue
		}
		data, err := os.ReadFile(d.file(name))
		if err != nil {
			return fmt.Errorf("reading what gardenlets were deployed: %w", err)
		}
		u := &unit{name: name}
		if err := json.Unmarshal(data, &u.record); err != nil || !u.record.Managed {
			klog.Background().Info(
				"Not running a gardenlet that was deployed before: it is not known how, or the landscape has fewer seeds now", "seed", name)
			continue
		}
		d.mu.Lock()
		d.units[name] = u
		d.mu.Unlock()
		d.work(u, func(ctx context.Context) error { return d.start(ctx, u, nil) })
	}
	return nil
}

func (d *deployer) find(name string) *unit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.units[name]
}

// Deploy runs a gardenlet, see deployment.Deployer.
func (d *deployer) Deploy(_ context.Context, g deployment.Gardenlet) error {
	checksum, err := g.Checksum()
	if err != nil {
		return err
	}
	d.mu.Lock()
	u := d.units[g.SeedName]
	if u == nil && d.stopped {
		d.mu.Unlock()
		return errors.New("the landscape is being stopped")
	}
	isNew := u == nil
	if isNew {
		u = &unit{name: g.SeedName, record: record{Managed: true}}
		d.units[g.SeedName] = u
	}
	d.mu.Unlock()
	u.mu.Lock()
	same := !isNew && u.record.Checksum == checksum && len(g.Bootstrap) == 0
	u.mu.Unlock()
	if same {
		return nil
	}
	d.work(u, func(ctx context.Context) error {
		u.mu.Lock()
		u.record.Checksum, u.record.Config = checksum, g.Config
		u.mu.Unlock()
		return d.start(ctx, u, &g)
	})
	return nil
}

// Delete ends a gardenlet and removes what it came with, see deployment.Deployer.
func (d *deployer) Delete(_ context.Context, target deployment.Target) error {
	if u := d.find(target.SeedName); u != nil {
		d.work(u, func(context.Context) error { return d.remove(u) })
	}
	return nil
}

// Status is what there is, see deployment.Deployer.
func (d *deployer) Status(ctx context.Context, target deployment.Target) (deployment.Status, error) {
	u := d.find(target.SeedName)
	if u == nil {
		return deployment.Status{}, nil
	}
	status := deployment.Status{Deployed: true, SeedName: u.name}
	u.mu.Lock()
	cluster := u.cluster
	u.mu.Unlock()
	if cluster == nil {
		return status, nil
	}
	reader, err := clientOf(cluster)
	if err != nil {
		return status, err
	}
	status.IdentityExpires, err = deployment.IdentityExpires(ctx, reader)
	return status, err
}

func clientOf(cluster *seed.Cluster) (client.Client, error) {
	return client.New(cluster.AdminConfig(), client.Options{Scheme: clientgoscheme.Scheme})
}

// work has the unit's worker do something next. What it had to do and has not begun is not done any more.
func (d *deployer) work(u *unit, do func(context.Context) error) {
	d.mu.Lock()
	stopped := d.stopped
	if !stopped {
		d.working.Add(1)
	}
	d.mu.Unlock()
	if stopped {
		return
	}
	u.mu.Lock()
	u.wanted = do
	begin := !u.busy
	u.busy = true
	u.mu.Unlock()
	if !begin {
		d.working.Done()
		return
	}
	go func() {
		defer d.working.Done()
		for {
			u.mu.Lock()
			next := u.wanted
			u.wanted = nil
			u.busy = next != nil
			u.mu.Unlock()
			if next == nil {
				return
			}
			if err := next(context.Background()); err != nil {
				klog.Background().Error(err, "Deploying a gardenlet", "seed", u.name)
				d.h.cfg.Status.Component(GardenletName+" "+u.name, control.StateFailed, err.Error())
			}
		}
	}()
}

// start runs a gardenlet as it is wanted now, in place of the one that runs.
func (d *deployer) start(ctx context.Context, u *unit, g *deployment.Gardenlet) error {
	if u.cluster == nil {
		cluster, err := d.h.startSeedCluster(ctx, u.name, 0)
		if err != nil {
			return err
		}
		u.mu.Lock()
		u.cluster = cluster
		u.mu.Unlock()
	}
	if g != nil && len(g.Bootstrap) > 0 {
		target, err := clientOf(u.cluster)
		if err != nil {
			return err
		}
		if err := deployment.PutBootstrap(ctx, target, g); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(u.record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.file(u.name)), 0o700); err != nil {
		return err
	}
	if err := fsutil.WriteFile(d.file(u.name), append(data, '\n'), 0o600); err != nil {
		return err
	}
	if u.stopGardenlet != nil {
		u.stopGardenlet()
		u.stopGardenlet = nil
	}
	return d.run(u)
}

// run starts what does not run yet in a unit.
func (d *deployer) run(u *unit) error {
	if u.stops == nil {
		for _, start := range []func(*seed.Cluster) (
			func(), error){d.h.startResourceManager, d.h.startProvider, d.h.startControlPlanes, d.h.startSeedLogin} {
			stop, err := start(u.cluster)
			if err != nil {
				return err
			}
			u.stops = append(u.stops, stop)
		}
	}
	var err error
	u.stopGardenlet, err = d.h.startGardenlet(u.cluster, u.record.Config, u.record.Managed)
	return err
}

// halt stops what runs in a unit, the gardenlet first.
func (u *unit) halt() {
	if u.stopGardenlet != nil {
		u.stopGardenlet()
		u.stopGardenlet = nil
	}
	for _, stop := range u.stops {
		stop()
	}
	u.stops = nil
}

// remove ends a unit for good, with its cluster if that is there because of it.
func (d *deployer) remove(u *unit) error {
	u.halt()
	var errs []error
	if u.record.Managed {
		errs = append(errs, d.h.removeSeedCluster(u.name, u.cluster))
	}
	if err := os.Remove(d.file(u.name)); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, component := range []string{GardenletName, providerName, resourceManager, controlPlanes} {
		d.h.cfg.Status.Remove(component + " " + u.name)
	}
	if u.record.Managed { // the landscape's own can be deployed again
		d.mu.Lock()
		delete(d.units, u.name)
		d.mu.Unlock()
	}
	return errors.Join(errs...)
}

// stop stops everything, with the clusters that are there because of a gardenlet; the others are the landscape's to stop.
func (d *deployer) stop() error {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.working.Wait()
	var errs []error
	for _, u := range d.units {
		u.halt()
		if u.record.Managed && u.cluster != nil {
			errs = append(errs, u.cluster.Stop())
		}
	}
	d.h.shoots.Stop()
	return errors.Join(errs...)
}
