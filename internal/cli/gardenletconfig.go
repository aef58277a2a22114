package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newGardenletConfig(g *globals) *cobra.Command {
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "gardenlet-config SEED",
		Short: "Print the configuration with which Gardener's own gardenlet runs for a seed",
		Long: `Print a GardenletConfiguration for Gardener's gardenlet. The landscape runs the cluster of the seed, and must be started
without its own gardenlets: gardenlite up --controllers='*,-gardenlet'.

The command makes a bootstrap token and writes the kubeconfig with it into the seed, as Secret
garden/gardenlet-kubeconfig-bootstrap. The gardenlet gets its identity with it at its first start, and then has its own.
It runs outside of its seed, where kube-apiserver.NAMESPACE.svc has no address: it reaches the API servers of Shoots through
a proxy of the landscape, whose address the command prints.`,
		Example: `  gardenlite up -d --controllers='*,-gardenlet'
  gardenlite gardenlet-config local > gardenlet.yaml
  HTTPS_PROXY=http://127.0.0.1:PORT gardenlet --config gardenlet.yaml  # as the command says`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions([]string{seedhost.SeedNames(1)[0]}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printGardenletConfig(cmd.Context(), g, args[0], life)
		},
	}
	cmd.Flags().DurationVar(&life, "ttl", bootstraptoken.DefaultLife, "how long the token is valid (1m to 720h)")
	return cmd
}

func printGardenletConfig(ctx context.Context, g *globals, seed string, life time.Duration) error {
	if err := bootstraptoken.Validate(seed, life); err != nil {
		return err
	}
	running, _, err := g.connect()
	if err != nil {
		return err
	}
	status, err := running.Status(ctx, false)
	if err != nil {
		return err
	}
	for _, component := range status.Components {
		if component.Name == seedhost.GardenletName+" "+seed {
			return usage.Errorf("the landscape runs its own gardenlet for seed %s: start it with --controllers='*,-gardenlet'", seed)
		}
	}
	garden, proxy, err := g.garden(ctx)
	if err != nil {
		return err
	}
	config, err := seedhost.ForeignGardenlet(ctx, garden, statedir.SeedKubeconfigPath(status.Dir, seed), seed, life)
	if err != nil {
		return fmt.Errorf("configuring a gardenlet for seed %s: %w", seed, err)
	}
	printf(g.err, "Start the gardenlet with HTTPS_PROXY=%s in its environment: it reaches the API servers of Shoots with it.\n", proxy)
	printf(g.out, "# Needs HTTPS_PROXY=%s in the environment.\n%s", proxy, lines(config))
	return nil
}
