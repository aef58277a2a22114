package cli

import (
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/usage"
	"github.com/gardenlite/gardenlite/manifests"
)

// sampleFile returns the file of a sample in the program.
func sampleFile(name string) string { return "samples/" + name + ".yaml" }

func newSample(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "sample [NAME]",
		Short: "Print a sample manifest, or the names of the samples",
		Example: `  gardenlite sample
  gardenlite sample shoot | kubectl apply -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(cobra.FixedCompletions(sampleNames(), cobra.ShellCompDirectiveNoFileComp)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				var rows [][]string
				for _, name := range sampleNames() {
					data, err := fs.ReadFile(manifests.FS, sampleFile(name))
					if err != nil {
						return err
					}
					rows = append(rows, []string{name, strings.TrimPrefix(firstLine(string(data)), "# ")})
				}
				table(g.out, "SAMPLE | WHAT IT IS", rows)
				return nil
			}
			data, err := fs.ReadFile(manifests.FS, sampleFile(args[0]))
			if err != nil {
				return usage.Errorf("there is no sample %q: there are %s", args[0], strings.Join(sampleNames(), ", "))
			}
			_, err = g.out.Write(data)
			return err
		},
	}
}

// sampleNames returns the names of the samples.
func sampleNames() (names []string) {
	files, _ := fs.Glob(manifests.FS, sampleFile("*")) // the pattern is well-formed
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "samples/"), ".yaml"))
	}
	return names
}
