package cli

import (
	"context"
	"net"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
)

func newGardenlet(g *globals) *cobra.Command {
	c := seedhost.GardenletConfig{}
	cmd := &cobra.Command{
		Use:   "gardenlet --seed NAME",
		Short: "Run a seed with its gardenlet alone, for a garden elsewhere",
		Long: `Run the cluster of a seed, its gardenlet, its resource manager and the local provider, for a garden elsewhere, until
Ctrl-C. (A landscape started with "gardenlite up" has its own.)

At the first start it bootstraps with the kubeconfig that "gardenlite token create --seed NAME" prints, and registers the
Seed. What it has got then is in the seed, so that later starts need no kubeconfig. Its data is in --data-dir (default
$XDG_STATE_HOME/gardenlite/gardenlet-NAME).

Without --config the Seed is of the provider "local", and refers to the Secrets garden/seed-NAME-backup and
garden/seed-NAME-dns, which "gardenlite token create" makes.`,
		Example: `  gardenlite token create --seed edge > bootstrap.kubeconfig
  gardenlite gardenlet --seed edge --bootstrap-kubeconfig bootstrap.kubeconfig
  # With a GardenletConfiguration, whose seedConfig says what the Seed is like
  gardenlite gardenlet --config gardenlet.yaml --bootstrap-kubeconfig bootstrap.kubeconfig`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGardenlet(cmd.Context(), g, c) },
	}
	f := cmd.Flags()
	f.StringVar(&c.Seed, "seed", "", "name of the seed")
	f.StringVar(&c.BootstrapKubeconfig, "bootstrap-kubeconfig", "", "kubeconfig to bootstrap with, for the first start")
	f.StringVar(&c.ConfigFile, "config", "", "GardenletConfiguration (gardenlet.config.gardener.cloud/v1alpha1)")
	f.StringVar(&c.BindAddress, "bind-address", landscape.DefaultBindAddress,
		"IP address for the seed's API server; beyond loopback others can reach it")
	f.IntVar(&c.Port, "port", 0, "port of the seed's API server; 0 takes a free one, and the same one again at the next start")
	f.StringVar(&c.Datastore, "datastore", "sqlite", "where the seed's data is, as with up")
	cmd.MarkFlagsOneRequired("seed", "config")
	for _, name := range []string{"bootstrap-kubeconfig", "config"} {
		_ = cmd.MarkFlagFilename(name)
	}
	return cmd
}

func runGardenlet(ctx context.Context, g *globals, c seedhost.GardenletConfig) error {
	c.Dir, c.LogFormat, c.Verbose = g.dataDir, g.logFormat, g.verbose
	if ip := net.ParseIP(c.BindAddress); ip != nil && !ip.IsLoopback() {
		printf(g.err, "WARNING: the seed listens on %s: its API server can be reached from other machines.\n", c.BindAddress)
	}
	progress := newProgress(g, 0)
	defer progress.close()
	c.OnEvent = progress.event
	progress.begin("Starting seed " + c.Seed)
	c.OnReady = func(s seedhost.GardenletStatus) {
		progress.close()
		printf(g.out, "\nSeed        %s, registered\nAPI server  %s\nKubeconfig  %s\nData        %s\nLog         %s\n",
			s.Seed, s.URL, s.Kubeconfig, s.Dir, s.Log)
		printLine(g.err, "Ctrl-C stops it; its data stays, and so does the Seed.")
	}
	if err := seedhost.RunGardenlet(ctx, c); err != nil {
		return err
	}
	printLine(g.err,
		"Stopped. The garden will find that the gardenlet of its seed is gone: \"gardenlite gardenlet\" goes on "+
			"where it was.")
	return nil
}
