package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/logview"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newLogs(g *globals) *cobra.Command {
	var follow bool
	var since time.Duration
	var level string
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT | CLUSTER]",
		Short: "Print the landscape's log",
		Long: `Print the log of the landscape, also when it does not run: all of it, or the lines of a component
(kube-apiserver, controller-manager, gardenlet …) or of a cluster (garden, a seed by its name, a shoot as PROJECT/NAME or
by its technical ID).`,
		Example: `  gardenlite logs -f
  gardenlite logs gardenlet --since 5m
  gardenlite logs dev/my-shoot --level error`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(completeNames(func(ctx context.Context) []string {
			dir, err := g.dir()
			if err != nil {
				return nil
			}
			return logview.Names(ctx, dir)
		})),
		RunE: func(cmd *cobra.Command, args []string) error {
			lowest, known := logview.ParseLevel(level)
			if !known {
				return usage.Errorf("--level %q: one of %s", level, strings.Join(logview.Levels, ", "))
			}
			filter := logview.Filter{Level: lowest}
			if len(args) > 0 {
				filter.Name = args[0]
			}
			if since < 0 {
				return usage.Errorf("--since %s: how far back, such as 10m", since)
			} else if since > 0 {
				filter.Since = time.Now().Add(-since)
			}
			return printLogs(cmd.Context(), g, filter, follow)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with new lines until Ctrl-C")
	f.DurationVar(&since, "since", 0, "print lines of this time until now only, such as 10m")
	f.StringVar(&level, "level", "debug", "lowest level of the lines: "+strings.Join(logview.Levels, ", "))
	_ = cmd.RegisterFlagCompletionFunc("level",
		cobra.FixedCompletions(logview.Levels, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printLogs(ctx context.Context, g *globals, filter logview.Filter, follow bool) error {
	dir, err := g.dir()
	if err != nil {
		return err
	}
	err = logview.Read(ctx, dir, filter, follow, func(line logview.Line) { printLine(g.out, line.Text) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g.notRunning()
	case follow && ctx.Err() != nil:
		return &exitError{code: exitInterrupted}
	}
	return err
}
