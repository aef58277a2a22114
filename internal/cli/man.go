package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/manpage"
	"github.com/gardenlite/gardenlite/internal/version"
)

func newMan(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands into a folder",
		Example: "  gardenlite man ~/.local/share/man/man1 && man gardenlite-shoot-create",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(cobra.FixedCompletions(nil,
			cobra.ShellCompDirectiveFilterDirs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages, err := manpage.Write(cmd.Root(), args[0], "gardenlite "+version.Version())
			if err == nil {
				printf(g.out, "%d pages are in %s.\n", pages, args[0])
			}
			return err
		},
	}
}
