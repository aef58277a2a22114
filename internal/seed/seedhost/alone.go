package seedhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/seedmanagement/encoding"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// GardenletConfig configures a gardenlet that runs alone.
type GardenletConfig struct {
	// Seed is the name of its Seed. It is optional with ConfigFile.
	Seed string
	// BootstrapKubeconfig is a file with a bootstrap kubeconfig. It is needed only while there is no certificate.
	BootstrapKubeconfig string
	// ConfigFile is a GardenletConfiguration, whose seedConfig describes the Seed.
	ConfigFile string
	// Dir is the state folder, which contains the seed's data, certificates and the log.
	Dir string
	// BindAddress and Port are where the seed's API server listens. Port 0 is a free port, also for the next start.
	BindAddress string
	Port        int
	// Datastore is the same as for a landscape.
	Datastore string
	// LogFormat and Verbose are the same as for a landscape.
	LogFormat string
	Verbose   bool
	// OnEvent is called for every step of the start, OnReady at the end of it.
	OnEvent func(control.Event)
	OnReady func(GardenletStatus)
}

// GardenletStatus says where to find a gardenlet that runs alone, and its seed.
type GardenletStatus struct {
	Seed       string
	URL        string // of the seed's API server
	Kubeconfig string // for the seed's administrator
	Dir, Log   string
}

// DefaultGardenletDir returns the default state folder of a gardenlet that runs alone.
func DefaultGardenletDir(seedName string) (string, error) {
	return statedir.DefaultDir("gardenlet-" + seedName)
}

// complete sets defaults, and returns the validated configuration of the gardenlet.
func (c *GardenletConfig) complete() (*gardenletconfigv1alpha1.GardenletConfiguration, error) {
	var problems []error
	configuration := gardenletConfiguration(c.Seed)
	if c.ConfigFile != "" {
		data, err := os.ReadFile(c.ConfigFile)
		if err == nil {
			configuration, err = encoding.DecodeGardenletConfigurationFromBytes(data, false)
		}
		switch {
		case err != nil:
			return nil, &usage.Error{Err: fmt.Errorf("--config: %w", err)}
		case configuration.SeedConfig == nil || configuration.SeedConfig.Name == "":
			problems = append(problems, fmt.Errorf("--config %s: it has no seed: set seedConfig.metadata.name and seedConfig.spec", c.ConfigFile))
		case c.Seed == "":
			c.Seed = configuration.SeedConfig.Name
		case c.Seed != configuration.SeedConfig.Name:
			problems = append(problems,
				fmt.Errorf("--config %s is for seed %q, --seed says %q", c.ConfigFile, configuration.SeedConfig.Name, c.Seed))
		}
	}
	if errs := validation.IsDNS1123Subdomain(c.Seed); len(problems) == 0 && len(errs) > 0 {
		problems = append(problems, fmt.Errorf("--seed %q: %s", c.Seed, errs[0]))
	}
	if c.BootstrapKubeconfig != "" {
		if _, err := clientcmd.LoadFromFile(c.BootstrapKubeconfig); err != nil {
			problems = append(problems, fmt.Errorf("--bootstrap-kubeconfig: %w", err))
		}
	}
	problems = append(problems, usage.CheckBindAddress(c.BindAddress), usage.CheckPort(c.Port), control.ValidateLogFormat(c.LogFormat))
	if err := (datastore.Config{Endpoint: c.Datastore}).Validate(); err != nil {
		problems = append(problems, fmt.Errorf("--datastore: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &usage.Error{Err: err}
	}
	var err error
	if c.Dir == "" {
		if c.Dir, err = DefaultGardenletDir(c.Seed); err != nil {
			return nil, err
		}
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	return configuration, nil
}

// RunGardenlet runs a seed with its gardenlet for a garden in another process, until the context ends.
func RunGardenlet(ctx context.Context, c GardenletConfig) (err error) {
	configuration, err := c.complete()
	if err != nil {
		return err
	}
	var closers []func() error
	onClose := func(f func() error) { closers = append(closers, f) }
	defer context.AfterFunc(ctx, quirks.BeginShutdown)()
	defer func() {
		for _, closer := range slices.Backward(closers) {
			err = errors.Join(err, closer())
		}
	}()
	if err := statedir.Prepare(c.Dir); err != nil {
		return err
	}
	held, err := statedir.Lock(c.Dir)
	if err != nil {
		return err
	}
	onClose(held.Unlock)
	logs, err := control.StartLogging(control.LogConfig{Dir: c.Dir, Format: c.LogFormat, Verbose: c.Verbose})
	if err != nil {
		return err
	}
	onClose(logs.Close)
	name := strings.ReplaceAll(c.Seed, ".", "-")
	name = name[:min(len(name), statedir.MaxName)]
	h, err := New(Config{
		Name: name, Dir: c.Dir, BindAddress: c.BindAddress, Datastore: c.Datastore, Context: "gardenlite-" + name,
		Selects: func(string) bool { return true }, Status: &control.Store{OnEvent: c.OnEvent}, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	onClose(h.Close)
	return h.runGardenlet(ctx, c, configuration, onClose)
}

func (h *Host) runGardenlet(ctx context.Context, c GardenletConfig,
	configuration *gardenletconfigv1alpha1.GardenletConfiguration, onClose func(func() error)) error {
	preferredPort := 0
	remembered := filepath.Join(h.cfg.Dir, statedir.PortFile)
	if data, err := os.ReadFile(remembered); err == nil {
		preferredPort, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	cluster, err := h.startSeedCluster(ctx, c.Seed, c.Port, preferredPort)
	if err != nil {
		return err
	}
	onClose(cluster.Stop)
	if err := fsutil.WriteFile(remembered, []byte(strconv.Itoa(cluster.Server().Port())+"\n"), 0o600); err != nil {
		return err
	}
	if c.BootstrapKubeconfig != "" {
		if err := h.checkGarden(ctx, cluster, c.BootstrapKubeconfig); err != nil {
			return err
		}
	}
	onClose(h.StopGardenlets)
	garden := Garden{Bootstrap: func(context.Context, string) ([]byte, error) {
		if c.BootstrapKubeconfig == "" {
			return nil, nil
		}
		return os.ReadFile(c.BootstrapKubeconfig)
	}}
	if err := h.openGarden(ctx, garden); err != nil {
		return err
	}
	err = h.startWork(ctx, cluster.AdminConfig(), func(context.Context) error { return h.adopt(cluster, configuration) })
	if err != nil {
		return err
	}
	if err := h.waitGardenlet(ctx, c.Seed); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if c.OnReady != nil {
		c.OnReady(GardenletStatus{Seed: c.Seed, URL: cluster.Server().URL(), Kubeconfig: statedir.SeedKubeconfigPath(h.cfg.Dir, c.Seed),
			Dir: h.cfg.Dir, Log: filepath.Join(h.cfg.Dir, statedir.LogFile)})
	}
	select {
	case <-ctx.Done():
		return nil
	case <-cluster.Done():
		return fmt.Errorf("the cluster of seed %s ended by itself: %w", c.Seed, cluster.Err())
	}
}

// checkGarden returns an error if the gardenlet has a certificate of another garden than that of the bootstrap kubeconfig,
// which it would not use.
func (h *Host) checkGarden(ctx context.Context, cluster *seed.Cluster, bootstrapKubeconfig string) error {
	data, err := os.ReadFile(bootstrapKubeconfig)
	if errors.Is(err, os.ErrNotExist) {
		return nil // later starts do not need it
	}
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig: %w", err)
	}
	client, err := newClient(cluster.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client for the seed: %w", err)
	}
	kept, wanted, err := bootstrap.OtherGarden(ctx, client, cluster.Name(), data, h.cfg.Clock)
	if err != nil || wanted == "" {
		return err
	}
	advice := "choose another folder with --data-dir, or remove this one"
	if h.shared() {
		advice = "choose another --datastore, which has the seed's data"
	}
	return fmt.Errorf("--bootstrap-kubeconfig %s is for the garden at %s, but the seed in %s belongs to another garden, that at %s: %s",
		bootstrapKubeconfig, wanted, h.cfg.Dir, kept, advice)
}

// waitGardenlet waits until the gardenlet of a seed is ready, or another process runs it. It returns an error the first time that the
// gardenlet fails.
func (h *Host) waitGardenlet(ctx context.Context, seedName string) error {
	failed := ""
	err := supervisor.WaitFor(ctx, "the gardenlet", func() bool {
		all := h.cfg.Status.Components()
		if slices.ContainsFunc(all, func(c control.Component) bool { return c.Name == seedsLease && c.Message == standby }) {
			return true
		}
		i := slices.IndexFunc(all, func(c control.Component) bool { return c.Name == GardenletName+" "+seedName })
		if i >= 0 && all[i].State == control.StateFailed {
			failed = all[i].Message
		}
		return i >= 0 && (all[i].State == control.StateReady || all[i].State == control.StateFailed)
	})
	if failed != "" {
		return errors.New(failed)
	}
	return err
}
