package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/authz/inspect"
)

// exitNotAllowed is the exit code for a request that is not allowed, as of "kubectl auth can-i".
const exitNotAllowed = 1

func newAccess(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Say what a gardenlet, an extension or a stack may do, and why, and try attacks",
		Long: `Say what the gardenlet of a seed, or an extension that runs on it, may do in the garden (scoped access), and try
attacks that the garden has to refuse; or what a stack may do, for which RBAC alone decides.

RBAC decides first. What it does not allow, SeedAuthorizer allows by its rules: at once ("free"), or for objects from
which the graph of dependencies has a path to the seed ("graph", see "gardenlite graph"). It never denies.`,
		Example: `  gardenlite access explain --as-seed local get secret garden-dev/sample
  gardenlite access matrix --as-seed local
  gardenlite access check`,
	}
	cmd.AddCommand(newAccessExplain(g), newAccessMatrix(g), newAccessCheck(g))
	return cmd
}

// addUserFlags adds the flags that say for whom access is explained.
func addUserFlags(g *globals, cmd *cobra.Command, u *inspect.User) {
	cmd.Flags().StringVar(&u.Seed, "as-seed", "", "name of the seed whose gardenlet asks")
	cmd.Flags().StringVar(&u.Extension, "as-extension", "", "NAMESPACE/NAME of the ServiceAccount of an extension on a seed")
	cmd.Flags().StringVar(&u.Stack, "as-stack", "", "NAMESPACE/NAME of a stack")
	complete := func(choose func(*inspect.Names) []string) cobra.CompletionFunc {
		return completeNames(func(ctx context.Context) []string { return choose(namesToComplete(ctx, g)) })
	}
	_ = cmd.RegisterFlagCompletionFunc("as-seed", complete(func(n *inspect.Names) []string { return n.Seeds }))
	_ = cmd.RegisterFlagCompletionFunc("as-extension", complete(func(n *inspect.Names) []string { return n.Extensions }))
	_ = cmd.RegisterFlagCompletionFunc("as-stack", complete(func(n *inspect.Names) []string { return n.Stacks }))
}

// namesToComplete returns the names that the landscape reports for shell completion, or none if it does not run.
func namesToComplete(ctx context.Context, g *globals) *inspect.Names {
	client, err := g.inspector()
	if err == nil {
		var names *inspect.Names
		if names, err = client.Names(ctx); err == nil {
			return names
		}
	}
	cobra.CompDebugln(plain(err.Error()), true)
	return &inspect.Names{}
}

// inspector returns a client for questions about scoped access.
func (g *globals) inspector() (inspect.Client, error) {
	client, _, err := g.connect()
	if err != nil {
		return inspect.Client{}, err
	}
	return inspect.Client{Call: client.Call}, nil
}
