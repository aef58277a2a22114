package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// injectFlags are the flags that name the extension resources of a Shoot which the simulated provider disturbs.
type injectFlags struct {
	project, kind string
	off           bool
}

func (i *injectFlags) add(g *globals, cmd *cobra.Command) {
	addProjectFlag(g, cmd, &i.project)
	f := cmd.Flags()
	f.StringVar(&i.kind, "kind", "", "kind of the extension resources: "+strings.Join(injection.Kinds, ", ")+
		" (default Infrastructure and Worker; with --off, all)")
	f.BoolVar(&i.off, "off", false, "end it")
	_ = cmd.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(injection.Kinds, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = completeProjectShoots(g, &i.project)
}

// set sets an annotation of a Shoot to a value, and prints what it does, or removes it with --off.
func (i *injectFlags) set(ctx context.Context, g *globals, name, annotation, value, effect string) error {
	kinds, of := []string{""}, "Infrastructure or Worker"
	at := slices.IndexFunc(injection.Kinds, func(kind string) bool { return strings.EqualFold(kind, i.kind) })
	switch {
	case at >= 0:
		kinds, of = injection.Kinds[at:at+1], injection.Kinds[at]
	case i.kind != "":
		return usage.Errorf("--kind %q: one of %s", i.kind, strings.Join(injection.Kinds, ", "))
	case i.off:
		kinds, of = append(kinds, injection.Kinds...), "extension resources"
	}
	annotations := map[string]*string{}
	for _, kind := range kinds {
		annotations[injection.AnnotationFor(annotation, kind)] = nil
		if !i.off {
			annotations[injection.AnnotationFor(annotation, kind)] = ptr.To(value)
		}
	}
	client, key, err := g.shoot(ctx, name, i.project)
	if err != nil {
		return err
	}
	if err := client.Annotate(ctx, key, annotations); err != nil {
		return explainShoot(g, err)
	}
	if i.off {
		effect = "no operation on its %s is disturbed like this any more"
	}
	printLine(g.out, fmt.Sprintf("Shoot %s: ", key)+fmt.Sprintf(effect, of)+".")
	return nil
}

func newShootFail(g *globals) *cobra.Command {
	flags := injectFlags{}
	var code, message string
	var once, always bool
	cmd := &cobra.Command{
		Use:   "fail NAME",
		Short: "Have operations on a shoot fail in the simulated cloud",
		Long: `Have the provider simulator report a failure of operations on a shoot's extension resources of the type local, as
a cloud would, with one of Gardener's error codes. With --once, one operation on one of them fails. It is an annotation
of the Shoot, which takes effect with the next operation, or on the one that is in progress.`,
		Example: `  gardenlite shoot fail my-shoot --kind Infrastructure --code ERR_INFRA_QUOTA_EXCEEDED --once
  gardenlite shoot fail my-shoot --kind Worker --code ERR_INFRA_RESOURCES_DEPLETED --message "none left" --always
  gardenlite shoot fail my-shoot --off`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.off {
				if code != "" || message != "" {
					return usage.Errorf("--off needs neither --code nor --message")
				}
				return flags.set(cmd.Context(), g, args[0], injection.AnnotationFail, "", "")
			}
			failure := injection.Failure{Once: once, Code: corev1beta1.ErrorCode(code), Text: message}
			value, err := failure.Value(strconv.FormatInt(time.Now().UnixMilli(), 36))
			if err != nil {
				return &usage.Error{Err: err}
			}
			effect := "every operation on its %s fails until \"gardenlite shoot fail --off\""
			if once {
				effect = "the next operation on its %s fails once"
			}
			return flags.set(cmd.Context(), g, args[0], injection.AnnotationFail, value, effect)
		},
	}
	flags.add(g, cmd)
	codes := make([]string, len(injection.Codes))
	for i, c := range injection.Codes {
		codes[i] = string(c)
	}
	f := cmd.Flags()
	f.StringVar(&code, "code", "", "Gardener's code of the error, such as ERR_INFRA_QUOTA_EXCEEDED (default none)")
	f.StringVar(&message, "message", "", "what the error says")
	f.BoolVar(&once, "once", false, "one operation fails")
	f.BoolVar(&always, "always", false, "every operation fails")
	cmd.MarkFlagsOneRequired("once", "always", "off")
	cmd.MarkFlagsMutuallyExclusive("once", "always", "off")
	_ = cmd.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newShootDelay(g *globals) *cobra.Command {
	flags := injectFlags{}
	cmd := &cobra.Command{
		Use:   "delay NAME {DURATION|--off}",
		Short: "Have operations on a shoot take their time in the simulated cloud",
		Long: `Have the provider simulator take its time for each operation on a shoot's extension resources of the type local.
It is an annotation of the Shoot, which takes effect with the next operation, or on the one that is in progress.`,
		Example: `  gardenlite shoot delay my-shoot 90s
  gardenlite shoot delay my-shoot --kind Worker 5m
  gardenlite shoot delay my-shoot --off`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.off == (len(args) == 2) {
				return usage.Errorf("give a duration such as 90s, or --off")
			}
			value, effect := "", ""
			if !flags.off {
				var err error
				if value, err = injection.ParseDelay(args[1]); err != nil {
					return usage.Errorf("%q: a duration from 0s to 24h, for example 90s", args[1])
				}
				effect = "each operation on its %s takes " + value
			}
			return flags.set(cmd.Context(), g, args[0], injection.AnnotationDelay, value, effect)
		},
	}
	flags.add(g, cmd)
	return cmd
}
