package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/authz/graphview"
	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newGraph(g *globals) *cobra.Command {
	var output string
	var open bool
	completeKinds := cobra.FixedCompletions(graphview.KindNames(), cobra.ShellCompDirectiveNoFileComp)
	filter := graphview.Filter{}
	cmd := &cobra.Command{
		Use:   "graph [KIND [[NAMESPACE/]NAME]]",
		Short: "Show the graph of dependencies that scoped access is decided by",
		Long: `Show the graph of dependencies between the garden's objects: an edge points toward the seed, and access to the
object at its end gives access to the one at its beginning.

With filters, those objects are shown, all that they lead to, and what leads to them directly. In a namespace and a name, *
stands for any text. (--name chooses the landscape, as everywhere.)`,
		Example: `  # Follow a shoot to its seed
  gardenlite graph shoot garden-dev/my-shoot
  # Everything in a namespace, and all Secrets whose names end with credentials
  gardenlite graph --namespace garden-dev
  gardenlite graph secret '*credentials'
  # All of it as a picture, for a browser
  gardenlite graph -o svg > graph.svg
  # For Graphviz, and for programs
  gardenlite graph seed -o dot | dot -Tpng > graph.png
  gardenlite graph -o json | jq '.edges | length'
  # The page where it can be clicked through
  gardenlite graph --open`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeArgs(completeKinds),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := readFilter(&filter, args); err != nil {
				return err
			}
			if open && cmd.Flags().Changed("output") {
				return usage.Errorf("--open shows the page, and -o prints the graph: say one of the two")
			}
			client, err := g.inspector()
			if err != nil {
				return err
			}
			if open {
				return openGraphPage(cmd.Context(), g, client, filter)
			}
			if output != "text" {
				return client.Graph(cmd.Context(), g.out, filter, output)
			}
			var text strings.Builder
			err = client.Graph(cmd.Context(), &text, filter, output)
			printf(g.out, "%s", lines(text.String()))
			return err
		},
	}
	addOutputFlag(cmd, &output, "text", "dot", "json", "svg")
	f := cmd.Flags()
	f.StringVar(&filter.Kind, "kind", "", "kind of the objects, such as Shoot")
	f.StringVarP(&filter.Namespace, "namespace", "n", "", "namespace of the objects")
	f.StringVar(&filter.Name, "object", "", "name of the objects")
	f.BoolVar(&open, "open", false, "open the page with the graph in a browser")
	_ = cmd.RegisterFlagCompletionFunc("kind", completeKinds)
	return cmd
}

// readFilter reads KIND [[NAMESPACE/]NAME] into the filter. It returns an error if a flag contradicts an argument.
func readFilter(f *graphview.Filter, args []string) error {
	set := func(to *string, value, what string) error {
		if *to != "" && value != "" && *to != value {
			return usage.Errorf("%s is both %q and %q: say it once", what, *to, value)
		}
		*to = cmp.Or(value, *to)
		return nil
	}
	if len(args) == 0 {
		return nil
	}
	if err := set(&f.Kind, args[0], "the kind"); err != nil || len(args) == 1 {
		return err
	}
	namespace, name, found := strings.Cut(args[1], "/")
	if !found {
		namespace, name = "", args[1]
	}
	return errors.Join(set(&f.Namespace, namespace, "the namespace"), set(&f.Name, name, "the name"))
}

// openGraphPage prints the address of the page, and opens it if there is a browser.
func openGraphPage(ctx context.Context, g *globals, client inspect.Client, filter graphview.Filter) error {
	page, err := client.Page(ctx, filter)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(page, "https://") {
		return fmt.Errorf("the landscape says that the page is at %q, which is no address of it", page)
	}
	printLine(g.out, page)
	printLine(g.err, "The page has the landscape's own certificate: a browser asks once whether to trust it.")
	opener, err := browser()
	if err != nil {
		printLine(g.err, err)
		return nil // the address is there to be copied
	}
	// The opener may run for longer than this command.
	if err := exec.Command(opener[0], append(opener[1:], page)...).Start(); err != nil {
		printf(g.err, "%s does not start (%v): open the address yourself.\n", opener[0], err)
	}
	return nil
}

// browser returns the command that opens an address: BROWSER, or the system's.
func browser() ([]string, error) {
	candidates := [][]string{{"xdg-open"}}
	switch runtime.GOOS {
	case "darwin":
		candidates = [][]string{{"open"}}
	case "windows":
		candidates = [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}
	}
	if name := os.Getenv("BROWSER"); name != "" {
		candidates = append([][]string{{name}}, candidates...)
	}
	for _, candidate := range candidates {
		if path, err := exec.LookPath(candidate[0]); err == nil {
			return append([]string{path}, candidate[1:]...), nil
		}
	}
	return nil, errors.New("there is no browser to open it with (BROWSER names one): open the address yourself")
}
