package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
)

func newToken(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make bootstrap tokens for gardenlets",
	}
	cmd.AddCommand(newTokenCreate(g))
	return cmd
}

type tokenFlags struct {
	seed, kubeconfig string
	life             time.Duration
	secrets, yes     bool
}

func newTokenCreate(g *globals) *cobra.Command {
	flags := tokenFlags{}
	cmd := &cobra.Command{
		Use:   "create --seed NAME",
		Short: "Print a kubeconfig with which a new gardenlet bootstraps",
		Long: `Make a bootstrap token for the gardenlet of one seed, and print a kubeconfig with it. The gardenlet asks for its
client certificate with it, and deletes the token then. The Secrets that a Seed of the local provider refers to, with
empty credentials for backups and DNS, are created too (--secrets=false: they are not). Until it expires, a user with the
kubeconfig can become the gardenlet of that seed, and of no other one: keep it secret.`,
		Example: `  gardenlite token create --seed edge > bootstrap.kubeconfig
  gardenlite gardenlet --seed edge --bootstrap-kubeconfig bootstrap.kubeconfig
  # For a garden elsewhere
  gardenlite token create --seed edge --kubeconfig garden.kubeconfig`,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd.Context(), g) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.seed, "seed", "", "name of the seed (required)")
	f.StringVar(&flags.kubeconfig, "kubeconfig", "", "kubeconfig for a garden elsewhere (default: this landscape's)")
	f.DurationVar(&flags.life, "ttl", bootstraptoken.DefaultLife, "how long the token is valid (1m to 720h)")
	f.BoolVar(&flags.secrets, "secrets", true, "create the Secrets in the namespace garden that a Seed of the local provider refers to")
	f.BoolVarP(&flags.yes, "yes", "y", false, "do not ask, also if the seed is registered")
	_ = cmd.MarkFlagRequired("seed")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

// config returns a client configuration for the garden.
func (t *tokenFlags) config(ctx context.Context, g *globals) (*rest.Config, error) {
	if t.kubeconfig == "" {
		return g.gardenConfig(ctx)
	}
	config, err := clientcmd.BuildConfigFromFlags("", t.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.kubeconfig, err)
	}
	return config, nil
}

func (t *tokenFlags) run(ctx context.Context, g *globals) error {
	if err := bootstraptoken.Validate(t.seed, t.life); err != nil {
		return err
	}
	config, err := t.config(ctx, g)
	if err != nil {
		return err
	}
	if registered, err := seedhost.SeedExists(ctx, config, t.seed); err != nil {
		return err
	} else if registered && !t.yes {
		question := fmt.Sprintf("Seed %q is registered: a gardenlet that bootstraps with this token takes it over. Create the token?", t.seed)
		if err := confirm(g, "token create", question); err != nil {
			return err
		}
	}
	if t.secrets {
		if err := seedhost.PrepareSeed(ctx, config, t.seed); err != nil {
			return err
		}
	}
	token, err := bootstraptoken.Create(ctx, config, t.seed, t.life, clock.RealClock{})
	if err != nil {
		return err
	}
	printf(g.err, "Token %s for the gardenlet of seed %q, until %s.\n", token.ID, token.Seed, moment(token.Expiration))
	_, err = g.out.Write(token.Kubeconfig)
	return err
}
