package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/seed"
)

// firstSeed is the name of the first seed; further ones have a number behind it.
const firstSeed = "local"

// seedPrefix is before a seed's name in the name of its cluster, and of its folders.
const seedPrefix = "seed-"

// SeedNames are the names of the first seeds of a landscape.
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

// seedClusters are clusters that start while the garden does.
type seedClusters struct {
	starting sync.WaitGroup
	mu       sync.Mutex
	running  map[string]*seed.Cluster
	errs     []error
}

// beginSeeds begins to start the clusters of the landscape's seeds, beside everything else.
func (l *Landscape) beginSeeds(ctx context.Context, previous *Run) *seedClusters {
	s := &seedClusters{running: map[string]*seed.Cluster{}}
	for _, name := range SeedNames(l.cfg.Seeds) {
		l.board.component(seedPrefix+name, StateStarting, "")
		port := 0
		if previous != nil && previous.SeedPorts[name] != 0 {
			port = freePort(l.cfg.BindAddress, previous.SeedPorts[name])
		}
		s.starting.Go(func() {
			cluster, err := l.startSeedCluster(ctx, name, port)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				s.errs = append(s.errs, err)
				return
			}
			s.running[name] = cluster
		})
	}
	l.onClose(func() error { return l.stopSeeds(s) })
	return s
}

func (l *Landscape) startSeedCluster(ctx context.Context, name string, port int) (*seed.Cluster, error) {
	cluster := seedPrefix + name
	begin := time.Now()
	c, err := seed.Start(ctx, seed.Config{
		Name: name, PKIDir: filepath.Join(l.cfg.Dir, pkiFolder, cluster), DataDir: filepath.Join(l.cfg.Dir, dataFolder, cluster),
		Datastore: l.cfg.Datastore, Prefix: l.prefix(cluster), BindAddress: l.cfg.BindAddress, Port: port, Region: region,
		Zone: zones[0], Processes: l.processes, AuditLog: l.auditLog(cluster), Clock: l.cfg.Clock,
		OnPhase: func(phase string, took time.Duration) { l.step("seed "+name+": "+phase, took) },
	})
	if err != nil {
		l.board.component(cluster, StateFailed, err.Error())
		return nil, err
	}
	kubeconfig, err := c.AdminKubeconfig(l.contextName() + "-" + cluster)
	if err == nil {
		err = fsutil.WriteFile(l.SeedKubeconfigPath(name), kubeconfig, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	l.board.component(cluster, StateReady, "")
	l.step("seed "+name+" in all", time.Since(begin))
	l.board.update(func(s *Status) {
		s.Clusters = append(s.Clusters, Cluster{Kind: "seed", Name: name, URL: c.Server().URL(), Port: c.Server().Port(),
			KubernetesVersion: controlplane.KubernetesVersion, State: StateReady})
	})
	return c, nil
}

// removeSeedCluster stops the cluster of a seed, if it runs, and deletes its data.
func (l *Landscape) removeSeedCluster(name string, c *seed.Cluster) error {
	cluster := seedPrefix + name
	var errs []error
	if c != nil {
		l.board.component(cluster, StateStopping, "")
		errs = append(errs, c.Stop())
	}
	for _, path := range []string{filepath.Join(l.cfg.Dir, dataFolder, cluster), filepath.Join(l.cfg.Dir, pkiFolder, cluster),
		l.SeedKubeconfigPath(name)} {
		errs = append(errs, os.RemoveAll(path))
	}
	l.board.gone(cluster)
	l.board.update(func(s *Status) {
		s.Clusters = slices.DeleteFunc(s.Clusters, func(c Cluster) bool { return c.Kind == "seed" && c.Name == name })
	})
	return errors.Join(errs...)
}

// auditLog is the audit log of a seed's cluster, "" for none.
func (l *Landscape) auditLog(cluster string) string {
	if l.cfg.AuditLog == "" {
		return ""
	}
	return l.cfg.AuditLog + "." + cluster
}

// wait returns when all clusters run, or an error if one does not.
func (s *seedClusters) wait() error {
	s.starting.Wait()
	return errors.Join(s.errs...)
}

// ports are where the clusters listen, by seed.
func (s *seedClusters) ports() map[string]int {
	ports := map[string]int{}
	for name, cluster := range s.running {
		ports[name] = cluster.Server().Port()
	}
	return ports
}

func (l *Landscape) stopSeeds(s *seedClusters) error {
	s.starting.Wait()
	errs := make([]error, 0, len(s.running))
	var stopping sync.WaitGroup
	var mu sync.Mutex
	for name, cluster := range s.running {
		l.board.component(seedPrefix+name, StateStopping, "")
		stopping.Go(func() {
			err := cluster.Stop()
			if err != nil {
				err = fmt.Errorf("stopping the cluster of seed %s: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// SeedKubeconfigPath is the file with the administrator's kubeconfig for the cluster of a seed.
func (l *Landscape) SeedKubeconfigPath(name string) string {
	return SeedKubeconfigPath(l.cfg.Dir, name)
}

// SeedKubeconfigPath is where a landscape in that directory has the administrator's kubeconfig for a seed's cluster.
func SeedKubeconfigPath(dir, name string) string {
	return filepath.Join(dir, kubeconfigFile+"-"+seedPrefix+name)
}

// KnownSeeds are the seeds whose clusters a landscape in that directory has, or had last.
func KnownSeeds(dir string) []string {
	files, _ := filepath.Glob(SeedKubeconfigPath(dir, "*"))
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimPrefix(filepath.Base(file), filepath.Base(SeedKubeconfigPath(dir, "")))
	}
	return names
}
