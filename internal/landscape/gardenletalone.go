package landscape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/seedmanagement/encoding"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// portFile is where a gardenlet that runs alone keeps its port, for the next start.
const portFile = "port"

// GardenletConfig is what a gardenlet that runs alone is started with.
type GardenletConfig struct {
	// Seed is the name of its Seed. With ConfigFile it may be left out.
	Seed string
	// BootstrapKubeconfig is a file with a kubeconfig to bootstrap with. It is needed only while there is no certificate.
	BootstrapKubeconfig string
	// ConfigFile is a GardenletConfiguration, whose seedConfig describes the Seed.
	ConfigFile string
	// Dir is its state folder: the seed's data, certificates, the log.
	Dir string
	// BindAddress and Port are where the seed's API server listens. Port 0 takes a free one, and the same one again at the
	// next start.
	BindAddress string
	Port        int
	// Datastore is as for a landscape.
	Datastore string
	// LogFormat and Verbose are as for a landscape.
	LogFormat string
	Verbose   bool
	// OnEvent is told of every step of the start, OnReady of the end of it.
	OnEvent func(Event)
	OnReady func(GardenletStatus)
}

// GardenletStatus says where a gardenlet that runs alone is.
type GardenletStatus struct {
	Seed       string
	URL        string // of the seed's API server
	Kubeconfig string // for the seed's administrator
	Dir, Log   string
}

// DefaultGardenletDir is the state folder of a gardenlet that runs alone.
func DefaultGardenletDir(seedName string) (string, error) {
	return DefaultDir("gardenlet-" + seedName)
}

// configuration reads and checks what the gardenlet is to be.
func (c *GardenletConfig) configuration() (*gardenletconfigv1alpha1.GardenletConfiguration, error) {
	var problems []error
	configuration := gardenletConfiguration(c.Seed)
	if c.ConfigFile != "" {
		data, err := os.ReadFile(c.ConfigFile)
		if err == nil {
			configuration, err = encoding.DecodeGardenletConfigurationFromBytes(data, false)
		}
		switch {
		case err != nil:
			return nil, &UsageError{Err: fmt.Errorf("--config: %w", err)}
		case configuration.SeedConfig == nil || configuration.SeedConfig.Name == "":
			problems = append(problems, fmt.Errorf("--config %s: it has no seed: set seedConfig.metadata.name and seedConfig.spec", c.ConfigFile))
		case c.Seed == "":
			c.Seed = configuration.SeedConfig.Name
		case c.Seed != configuration.SeedConfig.Name:
			problems = append(problems,
				fmt.Errorf("--config %s is for seed %q, --seed says %q", c.ConfigFile, configuration.SeedConfig.Name, c.Seed))
		}
	} else if errs := validation.IsDNS1123Subdomain(c.Seed); len(errs) > 0 {
		problems = append(problems, fmt.Errorf("--seed %q: %s", c.Seed, errs[0]))
	}
	if c.BootstrapKubeconfig != "" {
		if _, err := clientcmd.LoadFromFile(c.BootstrapKubeconfig); err != nil {
			problems = append(problems, fmt.Errorf("--bootstrap-kubeconfig: %w", err))
		}
	}
	if net.ParseIP(c.BindAddress) == nil {
		problems = append(problems, fmt.Errorf("--bind-address %q: not an IP address", c.BindAddress))
	}
	if c.Port < 0 || c.Port > 65535 {
		problems = append(problems, fmt.Errorf("--port %d: a port is between 1 and 65535, or 0 for a free one", c.Port))
	}
	if len(problems) > 0 {
		return nil, &UsageError{Err: errors.Join(problems...)}
	}
	return configuration, nil
}

// RunGardenlet runs a seed with its gardenlet for a garden elsewhere, until the context ends.
func RunGardenlet(ctx context.Context, c GardenletConfig) (err error) {
	configuration, err := c.configuration()
	if err != nil {
		return err
	}
	if c.Dir == "" {
		if c.Dir, err = DefaultGardenletDir(c.Seed); err != nil {
			return err
		}
	}
	name := strings.ReplaceAll(c.Seed, ".", "-")
	l := &Landscape{cfg: Config{
		Name: name[:min(len(name), 40)], Dir: c.Dir, BindAddress: c.BindAddress, Datastore: c.Datastore, LogFormat: c.LogFormat,
		Verbose: c.Verbose, OnEvent: c.OnEvent,
	}}
	if err := l.cfg.Complete(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, controlplane.BeginEnding)()
	defer func() { err = errors.Join(err, l.close()) }()
	if err := prepareDir(l.cfg.Dir); err != nil {
		return err
	}
	if err := l.takeLock(); err != nil {
		return err
	}
	logs, err := startLogging(&l.cfg)
	if err != nil {
		return err
	}
	l.onClose(logs.Close)
	if err := l.startProcesses(); err != nil {
		return err
	}
	return l.runGardenletAlone(ctx, c, configuration)
}

func (l *Landscape) runGardenletAlone(ctx context.Context, c GardenletConfig,
	configuration *gardenletconfigv1alpha1.GardenletConfiguration) error {
	port := c.Port
	remembered := filepath.Join(l.cfg.Dir, portFile)
	if data, err := os.ReadFile(remembered); err == nil && port == 0 {
		if before, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			port = freePort(l.cfg.BindAddress, before)
		}
	}
	cluster, err := l.startSeedCluster(ctx, c.Seed, port)
	if err != nil {
		return err
	}
	l.onClose(cluster.Stop)
	if err := fsutil.WriteFile(remembered, []byte(strconv.Itoa(cluster.Server().Port())+"\n"), 0o600); err != nil {
		return err
	}
	if err := l.openCloud(); err != nil {
		return err
	}
	l.deployer = newDeployer(l, gardenFor{bootstrap: func(context.Context, string) ([]byte, error) {
		if c.BootstrapKubeconfig == "" {
			return nil, nil
		}
		return os.ReadFile(c.BootstrapKubeconfig)
	}})
	l.onClose(l.deployer.stop)
	if err := l.deployer.adopt(cluster, configuration); err != nil {
		return err
	}
	if err := l.deployer.resume(); err != nil {
		return err
	}
	if err := l.waitGardenlet(ctx, c.Seed); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if c.OnReady != nil {
		c.OnReady(GardenletStatus{Seed: c.Seed, URL: cluster.Server().URL(), Kubeconfig: l.SeedKubeconfigPath(c.Seed),
			Dir: l.cfg.Dir, Log: l.logPath()})
	}
	select {
	case <-ctx.Done():
		return nil
	case <-cluster.Done():
		return fmt.Errorf("the cluster of seed %s ended by itself: %w", c.Seed, cluster.Err())
	}
}

// waitGardenlet returns when the gardenlet of a seed works, or the first time that it fails.
func (l *Landscape) waitGardenlet(ctx context.Context, seedName string) error {
	failed := ""
	err := waitFor(ctx, "the gardenlet", func() bool {
		for _, c := range l.board.components() {
			if c.Name == gardenletName+" "+seedName {
				if c.State == StateFailed {
					failed = c.Message
				}
				return c.State == StateReady || c.State == StateFailed
			}
		}
		return false
	})
	if failed != "" {
		return errors.New(failed)
	}
	return err
}
