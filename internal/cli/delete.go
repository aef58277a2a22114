package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newDelete(g *globals) *cobra.Command {
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "delete [NAME]",
		Short: "Stop a landscape, and delete its data and its contexts in your kubeconfig",
		Long: `Stop a landscape if it runs, delete its objects, certificates, kubeconfigs and logs, and remove its contexts from
your kubeconfig. Data in an external datastore stays there.`,
		Example: "  gardenlite delete\n  gardenlite delete test --yes",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(completeNames(func(context.Context) []string {
			return statedir.Names()
		})),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := *g
			if len(args) > 0 {
				if cmd.Flags().Changed("name") && g.name != args[0] {
					return usage.Errorf("the landscape is both %q and %q: say one of them", args[0], g.name)
				}
				chosen.name = args[0]
			}
			return deleteLandscape(cmd.Context(), &chosen, len(args) > 0 || cmd.Flags().Changed("name"), yes, timeout)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultDownTimeout, "how long to wait until it has stopped")
	return cmd
}

// deleteLandscape deletes the landscape of the flags. named says that the user has chosen it by its name.
func deleteLandscape(ctx context.Context, g *globals, named, yes bool, timeout time.Duration) error {
	dir, err := g.dir()
	if err != nil {
		return err
	}
	run, err := statedir.ReadRun(dir)
	switch {
	case errors.Is(err, statedir.ErrNotRunning):
		return fmt.Errorf("there is no landscape %q in %s: nothing was deleted; \"gardenlite list\" shows those that there are",
			g.name, dir)
	case err != nil:
		return fmt.Errorf("%w; \"gardenlite reset%s\" deletes the data all the same", err, g.nameFlag())
	case named && run.Name != g.name:
		return fmt.Errorf("the landscape in %s is %q, not %q: nothing was deleted", dir, run.Name, g.name)
	}
	g.name = run.Name
	if err := statedir.CheckReset(dir); err != nil && !errors.Is(err, statedir.ErrLocked) {
		return err
	}
	if !yes {
		question := fmt.Sprintf("Stop landscape %q and delete all its data in %s (%s)?", g.name, dir,
			mebibytes(fsutil.Size(dir)))
		if err := confirm(g, "delete", question); err != nil {
			return err
		}
	}
	if isHeld, err := statedir.IsHeld(dir); err != nil {
		return err
	} else if isHeld {
		if err := down(ctx, g, timeout); err != nil {
			return err
		}
	}
	return reset(g, true)
}
