package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

func newList(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all landscapes, running or not",
		Long: `List the landscapes of this machine, running or not, with what they take on the disk. Those with a --data-dir of
their own are not known: with --data-dir, list shows the one that is there.`,
		Example: "  gardenlite list\n  gardenlite list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs := statedir.Dirs()
			if g.dataDir != "" {
				dir, err := g.dir()
				if err != nil {
					return err
				}
				dirs = []string{dir}
			}
			all := control.List(cmd.Context(), dirs)
			return printAs(g.out, output, all, func() {
				if len(all) == 0 {
					printLine(g.err, "There are no landscapes. \"gardenlite up\" starts one.")
					return
				}
				printLandscapes(g, all, output == "wide")
			})
		},
	}
	addOutputFlag(cmd, &output, "table", "wide", "json", "yaml")
	return cmd
}

func printLandscapes(g *globals, all []control.Landscape, wide bool) {
	header := "NAME | STATE | STARTED | SIZE | ADDRESS | DATA"
	if wide {
		header += " | DATASTORE | VERSION | MESSAGE"
	}
	var rows [][]string
	for _, l := range all {
		started := ""
		if !l.StartedAt.IsZero() {
			started = age(l.StartedAt) + " ago"
		}
		row := []string{l.Name, l.State, started, mebibytes(l.Size), l.URL, l.Dir}
		if wide {
			row = append(row, l.Datastore, l.Version, l.Message)
		}
		rows = append(rows, row)
	}
	table(g.out, header, rows)
}
