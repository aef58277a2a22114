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

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// deployer implements deployment.Deployer: it runs the gardenlets, and clusters for their seeds, in this process.
type deployer struct {
	h *Host

	// ctx ends when the deployer is stopped.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // also held while ctx is ended
	units   map[string]*unit
	working sync.WaitGroup
}

var errStopping = errors.New("the landscape is being stopped")

func newDeployer(h *Host) *deployer {
	ctx, cancel := context.WithCancel(context.Background())
	return &deployer{h: h, units: map[string]*unit{}, ctx: ctx, cancel: cancel}
}

func (d *deployer) add(u *unit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.units[u.name] = u
}

// resume runs the gardenlets that were deployed before the process ended, in clusters of their own.
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
		data, err := os.ReadFile(d.h.recordFile(name))
		if err != nil {
			return fmt.Errorf("reading what gardenlets were deployed: %w", err)
		}
		u := &unit{name: name}
		if err := json.Unmarshal(data, &u.record); err != nil || !u.record.Managed {
			klog.Background().Info(
				"Not running a gardenlet that was deployed before: it is not known how, or the landscape has fewer seeds now", "seed", name)
			continue
		}
		d.add(u)
		d.work(u, func(ctx context.Context) error { return d.start(ctx, u, nil) })
	}
	return nil
}

func (d *deployer) find(name string) *unit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.units[name]
}

func (d *deployer) Deploy(_ context.Context, g deployment.Gardenlet) error {
	checksum, err := g.Checksum()
	if err != nil {
		return err
	}
	d.mu.Lock()
	u := d.units[g.SeedName]
	if u == nil && d.ctx.Err() != nil {
		d.mu.Unlock()
		return errStopping
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

func (d *deployer) Delete(_ context.Context, target deployment.Target) error {
	if u := d.find(target.SeedName); u != nil {
		d.work(u, func(ctx context.Context) error { return d.remove(ctx, u) })
	}
	return nil
}

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
	reader, err := newClient(cluster.AdminConfig())
	if err != nil {
		return status, err
	}
	status.IdentityExpires, err = deployment.IdentityExpires(ctx, reader)
	return status, err
}

// work makes the unit's worker call a function next. It replaces a function that has not been started yet.
func (d *deployer) work(u *unit, do func(context.Context) error) {
	d.mu.Lock()
	stopped := d.ctx.Err() != nil
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
			if err := next(d.ctx); err != nil && d.ctx.Err() == nil {
				klog.Background().Error(err, "Deploying a gardenlet", "seed", u.name)
				d.h.cfg.Status.SetComponentState(GardenletName+" "+u.name, control.StateFailed, err.Error())
			}
		}
	}()
}

// start replaces the running gardenlet, if there is one, with one that has the current configuration.
func (d *deployer) start(ctx context.Context, u *unit, g *deployment.Gardenlet) (err error) {
	defer func() {
		if err != nil { // the next Deploy tries again
			u.mu.Lock()
			u.record.Checksum = ""
			u.mu.Unlock()
		}
	}()
	if u.cluster == nil {
		cluster, err := d.h.startSeedCluster(ctx, u.name, 0, 0)
		if err != nil {
			return err
		}
		u.mu.Lock()
		u.cluster = cluster
		u.mu.Unlock()
	}
	if g != nil && len(g.Bootstrap) > 0 {
		target, err := newClient(u.cluster.AdminConfig())
		if err != nil {
			return err
		}
		if err := deployment.PutBootstrap(ctx, target, g); err != nil {
			return err
		}
	}
	if err := d.h.writeRecord(u); err != nil {
		return err
	}
	u.endGardenlet()
	return d.h.startComponents(u)
}

func (h *Host) writeRecord(u *unit) error {
	data, err := json.MarshalIndent(u.record, "", "  ")
	if err != nil {
		return err
	}
	file := h.recordFile(u.name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return fsutil.WriteKept(h.keeper(), file, append(data, '\n'), 0o600)
}

// remove stops a unit for good, and deletes its cluster if that was created for the gardenlet.
func (d *deployer) remove(ctx context.Context, u *unit) error {
	u.halt()
	var errs []error
	if u.record.Managed {
		u.mu.Lock()
		cluster := u.cluster
		u.cluster = nil
		u.mu.Unlock()
		if err := d.h.removeSeedCluster(ctx, u.name, cluster); err != nil {
			return err // the next Delete tries again, also after a restart
		}
	}
	if err := d.h.keeper().Remove(d.h.recordFile(u.name)); err != nil {
		return err // as above
	}
	if err := os.Remove(d.h.recordFile(u.name)); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	d.h.removeStatus(u)
	if u.record.Managed { // a unit of the landscape can be deployed again
		d.mu.Lock()
		delete(d.units, u.name)
		d.mu.Unlock()
	}
	return errors.Join(errs...)
}

// removeStatus removes the components of a unit from the status.
func (h *Host) removeStatus(u *unit) {
	for _, component := range ComponentNames() {
		h.cfg.Status.Remove(component + " " + u.name)
	}
}

// stop stops everything, including the clusters that were created for gardenlets. The landscape stops the others itself.
func (d *deployer) stop() error {
	d.mu.Lock()
	d.cancel()
	d.mu.Unlock()
	d.working.Wait()
	var errs []error
	for _, u := range d.units {
		u.halt()
		d.h.removeStatus(u)
		if u.record.Managed && u.cluster != nil {
			errs = append(errs, d.h.stopSeedCluster(u.name, u.cluster))
		}
	}
	return errors.Join(errs...)
}
