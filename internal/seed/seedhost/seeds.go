package seedhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/seed"
)

// firstSeed is the name of the first seed; further ones have a number behind it.
const firstSeed = "local"

// SeedNames returns the names of the given number of seeds of a landscape.
func SeedNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = firstSeed
		if i > 0 {
			names[i] += "-" + strconv.Itoa(i+1)
		}
	}
	return names
}

// seedClusters are the clusters that start at the same time as the garden.
type seedClusters struct {
	starting sync.WaitGroup
	mu       sync.Mutex
	running  map[string]*seed.Cluster
	errs     []error
}

// BeginSeeds starts the clusters of the given number of seeds in the background. They listen on their former ports, which
// are given by seed, if these are free.
func (h *Host) BeginSeeds(ctx context.Context, count int, ports map[string]int) {
	s := &seedClusters{running: map[string]*seed.Cluster{}}
	h.seeds, h.count = s, count
	for _, name := range SeedNames(count) {
		h.cfg.Status.SetComponentState(statedir.SeedPrefix+name, control.StateStarting, "")
		port := 0
		if ports[name] != 0 {
			port = statedir.FreePort(h.cfg.BindAddress, ports[name])
		}
		s.starting.Go(func() {
			cluster, err := h.startSeedCluster(ctx, name, port)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				s.errs = append(s.errs, err)
				return
			}
			s.running[name] = cluster
		})
	}
}

func (h *Host) startSeedCluster(ctx context.Context, name string, port int) (*seed.Cluster, error) {
	cluster := statedir.SeedPrefix + name
	begin := time.Now()
	c, err := seed.Start(ctx, seed.Config{
		Name: name, PKIDir: filepath.Join(h.cfg.Dir, statedir.PKIFolder, cluster),
		DataDir:   filepath.Join(h.cfg.Dir, statedir.DataFolder, cluster),
		Datastore: h.cfg.Datastore, Prefix: h.prefix(cluster), BindAddress: h.cfg.BindAddress, Port: port, Region: Region,
		Zone: Zones[0], Processes: h.processes, AuditLog: h.auditLog(cluster), Clock: h.cfg.Clock,
		OnPhase: func(phase string, took time.Duration) { h.cfg.Status.RecordStep("seed "+name+": "+phase, took) },
	})
	if err != nil {
		h.cfg.Status.SetComponentState(cluster, control.StateFailed, err.Error())
		return nil, err
	}
	kubeconfig, err := c.AdminKubeconfig(h.cfg.Context + "-" + cluster)
	if err == nil {
		err = fsutil.WriteFile(statedir.SeedKubeconfigPath(h.cfg.Dir, name), kubeconfig, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	h.cfg.Status.SetComponentState(cluster, control.StateReady, "")
	h.cfg.Status.RecordStep("seed "+name+" in all", time.Since(begin))
	h.cfg.Status.Update(func(s *control.Status) {
		s.Clusters = append(s.Clusters, control.Cluster{Kind: "seed", Name: name, URL: c.Server().URL(), Port: c.Server().Port(),
			KubernetesVersion: controlplane.KubernetesVersion, State: control.StateReady})
	})
	return c, nil
}

// removeSeedCluster stops the cluster of a seed, if it runs, and deletes its data.
func (h *Host) removeSeedCluster(name string, c *seed.Cluster) error {
	cluster := statedir.SeedPrefix + name
	var errs []error
	if c != nil {
		h.cfg.Status.SetComponentState(cluster, control.StateStopping, "")
		errs = append(errs, c.Stop())
	}
	for _, path := range []string{filepath.Join(h.cfg.Dir, statedir.DataFolder, cluster),
		filepath.Join(h.cfg.Dir, statedir.PKIFolder, cluster), statedir.SeedKubeconfigPath(h.cfg.Dir, name)} {
		errs = append(errs, os.RemoveAll(path))
	}
	h.cfg.Status.Remove(cluster)
	h.cfg.Status.Update(func(s *control.Status) {
		s.Clusters = slices.DeleteFunc(s.Clusters, func(c control.Cluster) bool { return c.Kind == "seed" && c.Name == name })
	})
	return errors.Join(errs...)
}

// auditLog returns the path of the audit log of a seed's cluster, empty if there is none.
func (h *Host) auditLog(cluster string) string {
	if h.cfg.AuditLog == "" {
		return ""
	}
	return h.cfg.AuditLog + "." + cluster
}

// WaitSeeds waits until all clusters run, and returns their ports by seed, or an error if one could not be started.
func (h *Host) WaitSeeds() (map[string]int, error) {
	h.seeds.starting.Wait()
	if err := errors.Join(h.seeds.errs...); err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for name, cluster := range h.seeds.running {
		ports[name] = cluster.Server().Port()
	}
	return ports, nil
}

// StopSeeds stops the clusters that BeginSeeds has started.
func (h *Host) StopSeeds() error {
	s := h.seeds
	s.starting.Wait()
	var errs []error
	var stopping sync.WaitGroup
	for name, cluster := range s.running {
		h.cfg.Status.SetComponentState(statedir.SeedPrefix+name, control.StateStopping, "")
		stopping.Go(func() {
			err := cluster.Stop()
			if err != nil {
				err = fmt.Errorf("stopping the cluster of seed %s: %w", name, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			errs = append(errs, err)
		})
	}
	stopping.Wait()
	return errors.Join(errs...)
}
