package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/version"
)

func newStatus(g *globals) *cobra.Command {
	var output string
	var wait, collect bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs, where, and what is not ready",
		Example: `  gardenlite status
  gardenlite status --wait -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := status(cmd.Context(), g, wait, timeout, collect)
			if err != nil {
				return err
			}
			all := statusWithShoots{Status: status, Shoots: shootsOf(cmd.Context(), g, status)}
			if status.State == control.StateReady {
				all.SeedsElsewhere = seedSummaries(cmd.Context(), g, status.Dir)
			}
			return printAs(g.out, output, all, func() { printStatus(g, &all, output == "wide") })
		},
	}
	addOutputFlag(cmd, &output, "table", "wide", "json", "yaml")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the landscape is ready")
	cmd.Flags().DurationVar(&timeout, "timeout", landscape.DefaultReadyTimeout, "how long to wait")
	cmd.Flags().BoolVar(&collect, "collect-garbage", false, "collect garbage before memory is measured")
	return cmd
}

func status(ctx context.Context, g *globals, wait bool, timeout time.Duration, collect bool) (*control.Status, error) {
	client, dir, err := g.connect()
	if err != nil {
		return nil, err
	}
	if wait {
		waitCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if _, err := control.WaitReady(waitCtx, dir); err != nil {
			return nil, err
		}
	}
	return client.Status(ctx, collect)
}

// statusWithShoots is the output of "gardenlite status": the status of the process, and the shoots and seeds of its
// garden.
type statusWithShoots struct {
	*control.Status `json:",inline"`
	Shoots          []shootclient.Summary `json:"shoots"`
	SeedsElsewhere  []control.Cluster     `json:"seedsElsewhere,omitempty"`
}

// shootsOf returns the landscape's shoots, or none while the garden does not answer: the rest of the status tells
// why.
func shootsOf(ctx context.Context, g *globals, s *control.Status) []shootclient.Summary {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	none := []shootclient.Summary{}
	if s.State != control.StateReady {
		return none
	}
	all, err := g.shoots(ctx)
	if err != nil {
		return none
	}
	return all
}

func printStatus(g *globals, s *statusWithShoots, wide bool) {
	printf(g.out, "Landscape   %s: %s, process %d, up %s, %s resident\nData        %s (%s)\nKubeconfig  %s\n\n",
		s.Name, s.State, s.PID, age(s.StartedAt), mebibytes(s.Memory.Resident), s.Dir, s.Datastore, s.Kubeconfig)
	var clusters [][]string
	for _, c := range slices.Concat(s.Clusters, s.SeedsElsewhere) {
		clusters = append(clusters, []string{c.Kind, c.Name, c.State, c.URL, c.KubernetesVersion, c.Message})
	}
	table(g.out, "KIND | CLUSTER | STATUS | ADDRESS | KUBERNETES | MESSAGE", clusters)
	var components [][]string
	for _, c := range s.Components {
		if c.Forbidden > 0 {
			c.Message = strings.TrimSpace(fmt.Sprintf("%s (%d requests have been forbidden, see the log)", c.Message, c.Forbidden))
		}
		components = append(components, []string{c.Name, c.State, c.Message})
	}
	printLine(g.out)
	table(g.out, "COMPONENT | STATUS | MESSAGE", components)
	if len(s.Processes) > 0 {
		var processes [][]string
		for _, p := range s.Processes {
			processes = append(processes, []string{p.Node, p.Namespace, p.Pod, p.Container, strconv.Itoa(p.PID),
				mebibytes(uint64(p.Memory)), strconv.Itoa(int(p.Restarts)), p.Program})
		}
		printLine(g.out)
		table(g.out, "NODE | NAMESPACE | POD | CONTAINER | PID | MEMORY | RESTARTS | PROGRAM", processes)
	}
	if len(s.Shoots) > 0 {
		printLine(g.out)
		printShoots(g, s.Shoots, wide)
	}
	if !wide {
		return
	}
	var phases [][]string
	for _, p := range s.Phases {
		phases = append(phases, []string{p.Name, span(p.Took)})
	}
	printLine(g.out)
	table(g.out, "START | TOOK", phases)
	printf(g.out, "\nLive heap %s, %d goroutines\n", mebibytes(s.Memory.LiveHeap), s.Goroutines)
}

func mebibytes(n uint64) string { return strconv.FormatUint(n>>20, 10) + " MiB" }

// versions is what "gardenlite version" prints.
type versions struct {
	Gardenlite string `json:"gardenlite"`
	Gardener   string `json:"gardener"`
	Kubernetes string `json:"kubernetes"`
}

// versionText returns the versions in one line.
func versionText() string {
	return fmt.Sprintf("%s (Gardener API %s, Kubernetes %s)", version.Version(), version.GardenerVersion, controlplane.KubernetesVersion)
}

func newVersion(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of gardenlite and of the APIs it serves",
		RunE: func(*cobra.Command, []string) error {
			v := versions{Gardenlite: version.Version(), Gardener: version.GardenerVersion, Kubernetes: controlplane.KubernetesVersion}
			return printAs(g.out, output, v, func() { printLine(g.out, "gardenlite "+versionText()) })
		},
	}
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}
