package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newClock(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "Show the clock of the landscape, and move it",
		Long: `Show the clock of the landscape. It is the real one until it is moved ahead, stopped or made faster, and never goes back.
Bastions, maintenance, hibernation schedules, certificates and rotations go by it, see docs/time.md.`,
		Example: `  gardenlite clock
  gardenlite clock advance 26h
  gardenlite clock set 2027-01-01T06:00:00Z
  gardenlite clock rate 60`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showClock(cmd.Context(), g, output) },
	}
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	cmd.AddCommand(newClockAdvance(g), newClockSet(g),
		newClockRate(g, "freeze", "Stop the clock", "  gardenlite clock freeze", 0),
		newClockRate(g, "run", "Let the clock go as the real one", "  gardenlite clock run", 1),
		newClockRate(g, "rate", "Make the clock faster", "  gardenlite clock rate 60", -1))
	return cmd
}

func newClockAdvance(g *globals) *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use:   "advance DURATION",
		Short: "Move the clock ahead by a duration",
		Long: `Move the clock ahead by a duration such as 90m, 26h or 365d. What becomes due on the way happens in its order, and has happened
when the command ends. If something does not end, the clock stays where that was due. Ctrl-C stops it at the next step.`,
		Example: `  gardenlite clock advance 26h
  gardenlite clock advance 365d --no-wait`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := parseDays(args[0])
			if err != nil {
				return err
			}
			return moveClock(cmd.Context(), g, control.ClockChange{By: by, AtOnce: noWait})
		},
	}
	addNoWaitFlag(cmd, &noWait)
	return cmd
}

func newClockSet(g *globals) *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use:               "set TIME",
		Short:             "Move the clock ahead to a time",
		Long:              "Move the clock ahead to a time in the format of RFC 3339, as advance does.",
		Example:           "  gardenlite clock set 2027-01-01T06:00:00Z",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := time.Parse(time.RFC3339, args[0])
			if err != nil {
				return usage.Errorf("%q is no time such as 2027-01-01T06:00:00Z", args[0])
			}
			return moveClock(cmd.Context(), g, control.ClockChange{To: &to, AtOnce: noWait})
		},
	}
	addNoWaitFlag(cmd, &noWait)
	return cmd
}

func addNoWaitFlag(cmd *cobra.Command, noWait *bool) {
	cmd.Flags().BoolVar(noWait, "no-wait", false, "move it at once: what is due happens afterwards, in no order")
}

// newClockRate returns a command that sets the rate, to its argument if that is negative.
func newClockRate(g *globals, name, short, example string, rate float64) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: short + ".", Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted := rate
			if wanted < 0 {
				var err error
				if wanted, err = strconv.ParseFloat(args[0], 64); err != nil || wanted <= 0 || wanted > landscapeclock.MaxRate {
					return usage.Errorf("%q: more than 0 and at most %d seconds in a real one", args[0], landscapeclock.MaxRate)
				}
			}
			client, _, err := g.connect()
			if err != nil {
				return err
			}
			if err := client.ChangeClock(cmd.Context(), control.ClockChange{Rate: &wanted}, func(time.Time) {}); err != nil {
				return err
			}
			return showClock(cmd.Context(), g, "")
		},
	}
	if rate < 0 {
		cmd.Use, cmd.Args = name+" SECONDS", cobra.ExactArgs(1)
		cmd.Long = "Let so many seconds pass in a real one."
	}
	return cmd
}

func moveClock(ctx context.Context, g *globals, change control.ClockChange) error {
	client, _, err := g.connect()
	if err != nil {
		return err
	}
	progress := newProgress(g, 0)
	defer progress.close()
	progress.begin("Advancing the clock")
	err = client.ChangeClock(ctx, change, func(at time.Time) {
		if progress.live { // hundreds of lines otherwise
			progress.say(moment(at))
		}
	})
	progress.close()
	if err != nil {
		return err
	}
	return showClock(ctx, g, "")
}

func showClock(ctx context.Context, g *globals, output string) error {
	client, _, err := g.connect()
	if err != nil {
		return err
	}
	now, err := client.Clock(ctx)
	if err != nil {
		return err
	}
	return printAs(g.out, output, now, func() {
		printf(g.out, "%s, %s\n", moment(now.Now), howItGoes(now))
		if now.Next != nil {
			printf(g.out, "Something is due next at %s, in %s.\n", moment(*now.Next), span(now.Next.Sub(now.Now).Round(time.Second)))
		}
	})
}

func howItGoes(now *control.Clock) string {
	ahead := "as the real clock"
	if now.Ahead >= time.Second {
		ahead = span(now.Ahead.Round(time.Second)) + " ahead of the real clock"
	} else if now.Ahead <= -time.Second {
		ahead = span(-now.Ahead.Round(time.Second)) + " behind the real clock"
	}
	switch now.Rate {
	case 1:
		return ahead
	case 0:
		return ahead + ", stopped"
	}
	return fmt.Sprintf("%s, %g seconds in a real one", ahead, now.Rate)
}

// parseDays parses a duration that may be in days, such as 365d.
func parseDays(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		if n, err = strconv.ParseFloat(days, 64); err == nil {
			d = time.Duration(n * 24 * float64(time.Hour))
		}
	}
	if err != nil || d < 0 || d > landscapeclock.MaxAdvance {
		return 0, usage.Errorf("%q is no duration such as 90m, 26h or 365d, of at most %g days", text, landscapeclock.MaxAdvance.Hours()/24)
	}
	return d, nil
}
