package cli

import (
	"context"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

// shootOperation is a command that requests something of a Shoot.
type shootOperation struct {
	name, short, long string
	// begun and done say what becomes of the Shoot.
	begun, done string
	request     requestOperation
}

type requestOperation func(ctx context.Context, client *shootclient.Client, key shootclient.Key, seed string) error

var shootOperations = []shootOperation{
	{"hibernate", "Hibernate a shoot", "Hibernate a shoot: its nodes and its API server go, its data stays.",
		"is being hibernated", "is hibernated", hibernation(true)},
	{"wake", "Wake up a hibernated shoot", "Wake up a shoot that is hibernated.",
		"is waking up", "is awake", hibernation(false)},
	{"retry", "Retry the failed operation of a shoot",
		"Retry the operation of a shoot that has failed. Operations that end with an error are retried without it.",
		"is tried again", "is ready", retryShoot},
	{"reconcile", "Reconcile a shoot", "Reconcile a shoot now, although nothing of it has changed.",
		"is being reconciled", "is ready", annotation(constants.GardenerOperationReconcile)},
	{"maintain", "Maintain a shoot now",
		"Maintain a shoot now instead of in its maintenance time window: versions and credentials are updated.",
		"is being maintained", "is ready", annotation(constants.ShootOperationMaintain)},
	{"migrate", "Move a shoot to another seed", "Move the control plane of a shoot to another seed. Its nodes stay.",
		"is being moved", "is on its new seed", migrateShoot},
}

func hibernation(enabled bool) requestOperation {
	return func(ctx context.Context, client *shootclient.Client, key shootclient.Key, _ string) error {
		return client.Hibernate(ctx, key, enabled)
	}
}

func annotation(operation string) requestOperation {
	return func(ctx context.Context, client *shootclient.Client, key shootclient.Key, _ string) error {
		return client.RequestOperation(ctx, key, operation)
	}
}

func retryShoot(ctx context.Context, client *shootclient.Client, key shootclient.Key, _ string) error {
	return client.Retry(ctx, key)
}

func migrateShoot(ctx context.Context, client *shootclient.Client, key shootclient.Key, seed string) error {
	return client.Migrate(ctx, key, seed)
}

func newShootOperation(g *globals, o shootOperation) *cobra.Command {
	var project, seed string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               o.name + " NAME",
		Short:             o.short,
		Long:              o.long,
		Example:           "  gardenlite shoot " + o.name + " my-shoot --wait",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeProjectShoots(g, &project),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !wait {
				timeout = 0
			}
			return o.run(cmd.Context(), g, args[0], project, seed, timeout)
		},
	}
	addProjectFlag(g, cmd, &project)
	if o.name == "migrate" {
		cmd.Example = "  gardenlite shoot migrate my-shoot --seed other --wait"
		cmd.Flags().StringVar(&seed, "seed", "", "seed to move to (required)")
		_ = cmd.MarkFlagRequired("seed")
		_ = cmd.RegisterFlagCompletionFunc("seed",
			completeNames(func(ctx context.Context) []string { return seedNames(ctx, g) }))
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultShootTimeout, "how long to wait")
	return cmd
}

// run requests the operation, and waits for its end unless the timeout is 0.
func (o *shootOperation) run(
	ctx context.Context, g *globals, name, project, seed string, timeout time.Duration) error {
	client, key, err := g.shoot(ctx, name, project)
	if err != nil {
		return err
	}
	if err := o.request(ctx, client, key, seed); err != nil {
		return explainShoot(g, err)
	}
	if timeout == 0 {
		printf(g.out, "Shoot %s %s.\n", key, o.begun)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newShootProgress(g, "Waiting for shoot "+key.String())
	defer progress.close()
	if _, err := client.Wait(ctx, key, progress.report); err != nil {
		return err
	}
	progress.close()
	printf(g.out, "Shoot %s %s.\n", key, o.done)
	return nil
}
