package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/usercontexts"
)

func newSeed(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Add seeds to the running landscape, and remove them",
		Long: `Add seeds to a landscape while it runs, and remove them. It stays so when the landscape is started again,
whatever its --seeds. Each seed is a cluster of its own with a gardenlet.`,
	}
	cmd.AddCommand(newSeedAdd(g), newSeedRemove(g))
	return cmd
}

func newSeedAdd(g *globals) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a seed, and wait until it is ready",
		Example: `  gardenlite seed add edge
  gardenlite shoot create my-shoot --seed edge`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			add := func(ctx context.Context, c *control.Client) error { return c.AddSeed(ctx, args[0]) }
			err := changeSeeds(cmd.Context(), g, timeout, "Adding seed "+args[0], add)
			if err == nil {
				printf(g.out, "Seed %s is ready.\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", landscape.DefaultReadyTimeout, "how long to wait")
	return cmd
}

func newSeedRemove(g *globals) *cobra.Command {
	var timeout time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a seed, with its cluster and its data",
		Long: `Delete a Seed, wait until its gardenlet has let it go, and delete its cluster. Seeds with Shoots stay. A seed
whose gardenlet runs in another process, or for a ManagedSeed, is not removed like this.`,
		Example:           "  gardenlite seed remove edge --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(func(ctx context.Context) []string { return seedNames(ctx, g) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := g.dir()
			if err != nil {
				return err
			}
			if !yes {
				question := fmt.Sprintf("Remove the seed %s with its cluster and its data?", args[0])
				if err := confirm(g, "seed remove", question); err != nil {
					return err
				}
			}
			remove := func(ctx context.Context, c *control.Client) error { return c.RemoveSeed(ctx, args[0]) }
			if err := changeSeeds(cmd.Context(), g, timeout, "Removing seed "+args[0], remove); err != nil {
				return err
			}
			forgetContexts(g, usercontexts.Owner{Dir: dir, Cluster: "seed " + args[0]})
			printf(g.out, "Seed %s is gone.\n", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&timeout, "timeout", landscape.DefaultReadyTimeout, "how long to wait")
	return cmd
}

// changeSeeds has the process of the landscape change its seeds. The process goes on with what cannot be left half
// done when the time is over.
func changeSeeds(ctx context.Context, g *globals, timeout time.Duration, title string,
	change func(context.Context, *control.Client) error) error {
	client, _, err := g.connect()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newProgress(g, 0)
	defer progress.close()
	progress.begin(title)
	err = change(waiting, client)
	if errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not done within %s (--timeout): \"gardenlite status%s\" shows what is missing",
			timeout, g.nameFlag())
	}
	return err
}
