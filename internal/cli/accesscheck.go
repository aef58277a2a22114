package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/authz/accesscheck"
	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newAccessCheck(g *globals) *cobra.Command {
	var kubeconfig, victim, output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Try attacks on scoped access",
		Long: `Try the attacks that scoped access has to withstand, as the gardenlet of a throwaway seed and as an extension on
it, and say what the garden answers. The Seed that is attacked comes to no harm, even if an attack succeeds: it
is only read, and every write of an attacker is a dry run. What the check creates has the label
gardenlite.dev/access-check and is removed at the end; if the check is killed, by the next one. Run one at a
time.

  refused     the garden withstands the attack
  open        the attack succeeds
  allowed     a control: a request that has to work, without which refusals prove nothing
  undecided   the answer is neither, or a control does not work
  skipped     the attack cannot be tried here

With --kubeconfig it tries a garden elsewhere, such as a Gardener, and creates nothing there; attacks that need
a seed of their own are skipped. The user of the kubeconfig has to be allowed to read Seeds, Shoots,
BackupBuckets and BackupEntries, and to impersonate users and groups; roles and bindings are skipped without
the right to list them.

The exit status is 0 if all that was tried is refused, and 1 if an attack is open or undecided, or the check
failed (then standard output is empty); 2 for wrong usage, 3 if the landscape does not run.`,
		Example: `  gardenlite access check
  gardenlite access check --victim local -o json | jq '.results[] | select(.outcome == "open")'
  # A garden elsewhere: nothing is created
  gardenlite access check --kubeconfig garden.kubeconfig`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" && cmd.Flags().Changed("kubeconfig") {
				return usage.Errorf("--kubeconfig is empty: name a file, or leave the flag out for this landscape")
			}
			return accessCheck(cmd.Context(), g, kubeconfig, victim, output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of a garden elsewhere (default: this landscape's)")
	f.StringVar(&victim, "victim", "", "name of the Seed to attack (default: the one with the most Shoots)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("victim", completeNames(func(ctx context.Context) []string {
		if kubeconfig != "" {
			return nil
		}
		return namesToComplete(ctx, g).Seeds
	}))
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

func accessCheck(ctx context.Context, g *globals, kubeconfig, victim, output string) error {
	o := accesscheck.Options{Live: kubeconfig == "", Victim: victim}
	var err error
	if o.Live {
		if o.Admin, err = g.gardenConfig(ctx); err == nil {
			o.AllReads, err = g.allReads()
		}
	} else if o.Admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		err = usage.Errorf("reading %s: %w", kubeconfig, err)
	}
	if err != nil {
		return err
	}
	report, err := accesscheck.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := printAs(g.out, output, report, func() { printCheck(g.out, report) }); err != nil {
		return err
	}
	if !report.Holds() {
		return &exitError{code: exitNotAllowed}
	}
	return nil
}

// allReads reports whether the landscape was started with --seed-authorizer-reads=all.
func (g *globals) allReads() (bool, error) {
	dir, err := g.dir()
	if err != nil {
		return false, err
	}
	run, err := statedir.ReadRun(dir)
	return run.Options[readsFlag] == string(server.ReadsAll), err
}

// printCheck prints the outcome of each attack with its request and answer, and then the number of each outcome.
func printCheck(out io.Writer, report *accesscheck.Report) {
	printf(out, "Garden    %s\nAttacker  seed %s: its gardenlet, and an extension on it\nVictim    seed %s\n\n",
		report.Garden, report.Seed, report.Victim)
	for _, r := range report.Results {
		kind := "-"
		if r.Kind > 0 {
			kind = fmt.Sprint(r.Kind)
		}
		printf(out, "%-9s  %2s  %s: %s\n", r.Outcome, kind, r.As, r.Attack)
		var rest []string
		if r.Request != "" {
			rest = append(rest, r.Request)
		}
		answer := r.Answer
		if r.Code != 0 {
			answer = strings.TrimSpace(fmt.Sprint(r.Code, " ", answer))
		}
		if r.Unexpected {
			answer += " (refused, but for another reason than in gardenlite)"
		}
		for _, line := range append(rest, answer) {
			printf(out, "               %s\n", line)
		}
	}
	var counts []string
	for _, outcome := range accesscheck.Outcomes() {
		counts = append(counts, fmt.Sprintf("%d %s", report.Counts[outcome], outcome))
	}
	tried := len(report.Results) - report.Counts[accesscheck.Skipped]
	printf(out, "\n%d tried: %s.\n", tried, strings.Join(counts, ", "))
	switch {
	case report.Counts[accesscheck.Open] > 0:
		printLine(out, "Scoped access does not hold.")
	case !report.Holds():
		printLine(out, "Whether scoped access holds is not decided.")
	default:
		printLine(out, "Scoped access holds against what was tried.")
	}
}
