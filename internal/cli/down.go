package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/snapshot"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
	"github.com/gardenlite/gardenlite/internal/usercontexts"
)

func newDown(g *globals) *cobra.Command {
	var timeout time.Duration
	var all bool
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Stop the landscape; its data stays",
		Example: "  gardenlite down\n  gardenlite down --name test --timeout 10s\n  gardenlite down --all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return down(cmd.Context(), g, timeout)
			}
			if cmd.Flags().Changed("name") || cmd.Flags().Changed("data-dir") {
				return usage.Errorf("--all stops all landscapes, and --name and --data-dir choose one: say one of the two")
			}
			return downAll(cmd.Context(), g, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", defaultDownTimeout, "how long to wait until it has stopped")
	cmd.Flags().BoolVar(&all, "all", false, "stop all landscapes that \"gardenlite list\" shows")
	return cmd
}

// defaultDownTimeout is how long commands wait until a landscape has stopped.
const defaultDownTimeout = time.Minute

// downAll stops all landscapes at the default place, also after one could not be stopped.
func downAll(ctx context.Context, g *globals, timeout time.Duration) error {
	var errs []error
	stopped := 0
	for _, l := range control.List(ctx, statedir.Dirs()) {
		if l.State == control.StateStopped {
			continue
		}
		if err := down(ctx, g.landscape(l), timeout); err != nil {
			errs = append(errs, fmt.Errorf("landscape %q: %w", l.Name, err))
		}
		stopped++
	}
	if stopped == 0 {
		printLine(g.out, "No landscape is running.")
	}
	return errors.Join(errs...)
}

func down(ctx context.Context, g *globals, timeout time.Duration) error {
	client, dir, err := g.connect()
	if isNotRunning(err) { // it has stopped already
		printf(g.out, "Landscape %q is not running.\n", g.name)
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if status, err := client.Status(ctx, false); err == nil && status.DatastoreFailed() {
		printf(g.err, "The datastore does not answer: landscape %q may take half a minute to stop.\n", g.name)
	}
	if err := client.Stop(ctx); err != nil {
		return err
	}
	if err := control.WaitStopped(ctx, dir); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("not stopped within %s: it goes on stopping; ask again, or see %s/gardenlite.log",
				span(timeout), dir)
		}
		return err
	}
	printf(g.out, "Landscape %q has stopped; its data is in %s.\n", g.name, dir)
	return nil
}

func isNotRunning(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.code == exitNotRunning
}

func newReset(g *globals) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Delete the landscape's data",
		Long: "Delete the data of a landscape that has been stopped: its objects, certificates, kubeconfig, logs and snapshots, and its\n" +
			"contexts in your own kubeconfig. Data in an external datastore stays there.",
		Example: "  gardenlite reset --yes",
		RunE:    func(*cobra.Command, []string) error { return reset(g, yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func reset(g *globals, yes bool) error {
	dir, err := g.dir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		printf(g.out, "Landscape %q has no data.\n", g.name)
		return nil
	}
	if err := statedir.CheckReset(dir); errors.Is(err, statedir.ErrLocked) {
		return fmt.Errorf("%w: stop it first with \"gardenlite down%s\"", err, g.nameFlag())
	} else if err != nil {
		return err
	}
	if !yes {
		question := fmt.Sprintf("Delete all data of landscape %q in %s?", g.name, dir)
		if count := len(snapshot.Names(dir)); count > 0 {
			question = fmt.Sprintf("Delete all data of landscape %q in %s, and its snapshots (%d)?", g.name, dir, count)
		}
		if err := confirm(g, "reset", question); err != nil {
			return err
		}
	}
	forgetContexts(g, usercontexts.Owner{Dir: dir})
	if err := statedir.Reset(dir, func() error { return endLeftovers(dir) }); err != nil {
		return err
	}
	printf(g.out, "The data of landscape %q is deleted.\n", g.name)
	return nil
}

// endLeftovers ends the processes of containers that a killed landscape has left behind.
func endLeftovers(dir string) error {
	return process.EndLeftovers(filepath.Join(dir, statedir.ProcessesFolder), klog.Background())
}

// confirm asks for confirmation before something is done that cannot be undone. Any answer but yes is an error, and so
// is a missing terminal.
func confirm(g *globals, command, question string) error {
	if file, ok := g.in.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return usage.Errorf("%s asks first, and there is no terminal to ask on: say --yes", command)
	}
	printf(g.err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(g.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
