package cli

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

type shootCreateFlags struct {
	shootclient.Spec
	workers int32
	wait    bool
	context bool
	timeout time.Duration
	output  string
}

func newShootCreate(g *globals) *cobra.Command {
	flags := shootCreateFlags{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a shoot like the sample",
		Long: `Create a shoot like the sample that comes with gardenlite, with what the flags say. If there is one like it already, create
says so and ends with 0; if that one is otherwise, with 1.`,
		Example: `  gardenlite shoot create my-shoot --wait
  gardenlite shoot create my-shoot --workers 5 --kubernetes-version 1.35.2 --seed local
  gardenlite shoot create my-shoot --wait --kubeconfig-context && kubectl get nodes
  gardenlite shoot create my-shoot --wait -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("workers") {
				flags.Workers = &flags.workers
			}
			if flags.context && !flags.wait && cmd.Flags().Changed("kubeconfig-context") {
				return usage.Errorf("--kubeconfig-context needs --wait: a shoot has a kubeconfig once it is ready")
			}
			return flags.run(cmd.Context(), g, args[0])
		},
	}
	addProjectFlag(g, cmd, &flags.Project)
	f := cmd.Flags()
	f.Int32Var(&flags.workers, "workers", 0, "how many nodes (default: as the sample has; 0: a shoot without workers)")
	f.StringVar(&flags.KubernetesVersion, "kubernetes-version", "",
		"version of Kubernetes, one of the cloud profile's (default: the sample's)")
	f.StringVar(&flags.Seed, "seed", "", "seed that runs it (default: the scheduler chooses)")
	f.BoolVar(&flags.wait, "wait", false, "wait until the shoot is ready")
	f.DurationVar(&flags.timeout, "timeout", defaultShootTimeout, "how long to wait")
	addOutputFlag(cmd, &flags.output, "text", "name", "json", "yaml")
	addContextFlag(cmd, &flags.context)
	_ = cmd.RegisterFlagCompletionFunc("seed", completeNames(func(context.Context) []string {
		dir, err := g.dir()
		if err != nil {
			return nil
		}
		return statedir.LocalSeeds(dir)
	}))
	_ = cmd.RegisterFlagCompletionFunc("kubernetes-version", completeNames(func(ctx context.Context) []string {
		client, err := g.shootClient(ctx)
		if err != nil {
			return nil
		}
		versions, _ := client.KubernetesVersions(ctx) // after an error, nothing is completed
		return versions
	}))
	return cmd
}

func (c *shootCreateFlags) run(ctx context.Context, g *globals, name string) error {
	if c.workers < 0 {
		return usage.Errorf("--workers %d: a number of nodes, or 0 for a shoot without workers", c.workers)
	}
	client, key, err := g.shoot(ctx, name, c.Project)
	if err != nil {
		return err
	}
	c.Key = key
	shoot, created, err := client.Create(ctx, c.Spec)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Shoot %s exists already.", key)
	if created {
		message = fmt.Sprintf("Shoot %s is created.", key)
	}
	if c.wait {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		progress := newShootProgress(g, "Waiting for shoot "+key.String())
		defer progress.close()
		if shoot, err = client.Wait(ctx, key, progress.report); err != nil {
			return err
		}
		progress.close()
		message = fmt.Sprintf("Shoot %s is ready.", key)
		if c.context {
			k := kubeconfigFlags{merge: true, expiration: landscape.DefaultMaxKubeconfigExpiration}
			if err := k.writeShoot(ctx, g, client, key); err != nil {
				return fmt.Errorf("shoot %s is ready, but has no context: %w", key, err)
			}
		}
	}
	shoot.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	return printAs(g.out, c.output, shoot, func() {
		if c.output == "name" {
			printLine(g.out, key)
			return
		}
		printLine(g.out, message)
		if c.wait && !c.context {
			printf(g.err, "Type next: gardenlite%s kubeconfig shoot %s --merge\n", g.nameFlag(), key)
		}
	})
}

// shootProgress shows the operation of a Shoot that a command waits for.
type shootProgress struct{ *progress }

func newShootProgress(g *globals, title string) shootProgress {
	p := shootProgress{newProgress(g, 0)}
	p.begin(title)
	return p
}

// report shows the state of the operation: in the live line or, without one, in a line of its own.
func (p shootProgress) report(change shootclient.Progress) {
	text := change.String()
	if description := firstLine(change.Description); description != "" {
		text += ": " + description
	}
	p.say(text)
}
