package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/inspect"
)

func newAccessMatrix(g *globals) *cobra.Command {
	var output string
	u := inspect.User{}
	cmd := &cobra.Command{
		Use:   "matrix (--as-seed NAME | --as-extension NAMESPACE/NAME | --as-stack NAMESPACE/NAME)",
		Short: "Try every verb of every resource",
		Long: `Try every verb of every resource and subresource that the garden serves, and compare with the rules:

  rbac    RBAC allows it, for all objects
  free    SeedAuthorizer allows it at once
  graph   SeedAuthorizer allows it for the objects from which the graph has a path to the seed; OBJECTS says how many there are
  within  SeedAuthorizer allows it in the namespaces from which the graph has a path to the seed
  select  SeedAuthorizer allows it with the selector for the seed that OBJECTS says, and for one object as with graph
  -       not allowed

Where OBJECTS says names, the row is for these only. For a stack, resources in namespaces are those of its own namespace; what
it may do elsewhere is said below the table. Creating, changing and deleting is then looked at by SeedRestriction as
well. Resources with nothing but "-" are left out; -o wide shows them too.`,
		Example: `  gardenlite access matrix --as-seed local
  gardenlite access matrix --as-extension seed-local/extension-provider-local -o wide
  gardenlite access matrix --as-stack dev/wordpress
  gardenlite access matrix --as-seed local -o json | jq '.rows[] | select(.verbs.delete == "free")'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return accessMatrix(cmd.Context(), g, u, output) },
	}
	addUserFlags(g, cmd, &u)
	addOutputFlag(cmd, &output, "table", "wide", "json", "yaml")
	return cmd
}

func accessMatrix(ctx context.Context, g *globals, u inspect.User, output string) error {
	if err := u.Validate(); err != nil {
		return err
	}
	client, err := g.inspector()
	if err != nil {
		return err
	}
	if u.Seed != "" {
		names, err := client.Names(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(names.Seeds, u.Seed) {
			printf(g.err, "There is no Seed %q: this is what a gardenlet may do that is to register it.\n", u.Seed)
		}
	}
	m, err := client.Matrix(ctx, u)
	if err != nil {
		return err
	}
	var disagreements error
	if err := printAs(g.out, output, m, func() { disagreements = printMatrix(g, m, output == "wide") }); err != nil {
		return err
	}
	return disagreements
}

func printMatrix(g *globals, m *inspect.Matrix, wide bool) error {
	printf(g.out, "%s: user %s, groups %s\n\n", m.Identity, m.User, strings.Join(m.Groups, ", "))
	verbs := authorizer.AllVerbs()
	var rows [][]string
	left := 0
	// The sort is stable: rows for some objects of a resource stay below the row for all of them.
	slices.SortStableFunc(m.Rows, func(a, b inspect.Row) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Subresource, b.Subresource))
	})
	for _, r := range m.Rows {
		if r.Empty() && !wide {
			left++
			continue
		}
		row := []string{r.Title(wide || ambiguous(m.Rows, r))}
		for _, verb := range verbs {
			row = append(row, cell(r.Verbs[verb]))
		}
		objects := r.Only()
		if r.Objects != nil {
			objects = strconv.Itoa(*r.Objects)
		}
		switch {
		case !slices.Contains(slices.Collect(maps.Values(r.Verbs)), inspect.Selector):
		case r.LabelSelector != "":
			objects += ", -l " + r.LabelSelector
		default:
			objects += ", --field-selector " + r.FieldSelector
		}
		rows = append(rows, append(row, objects))
	}
	header := "RESOURCE | " + strings.ToUpper(strings.Join(verbs, " | ")) + " | OBJECTS"
	table(g.out, header, rows)
	printf(g.out, "\n%d requests tried.", m.Tried)
	if left > 0 {
		printf(g.out, " Nothing is allowed with %d more resources (-o wide shows them).", left)
	}
	printLine(g.out)
	for _, binding := range m.OtherBindings {
		printLine(g.out, "Besides,", binding)
	}
	for _, disagreement := range m.Disagreements {
		printLine(g.out, "Otherwise than expected:", disagreement)
	}
	if len(m.Disagreements) > 0 {
		return fmt.Errorf("the garden's API server answers %d requests otherwise than the rules say: does it reach the "+
			"admission controller? See \"gardenlite status\"", len(m.Disagreements))
	}
	return nil
}

// ambiguous reports whether another API group has a resource of the same name with something allowed.
func ambiguous(rows []inspect.Row, r inspect.Row) bool {
	return slices.ContainsFunc(rows, func(other inspect.Row) bool {
		return other.Resource == r.Resource && other.Group != r.Group && !other.Empty()
	})
}

// cell returns the text of a table cell, which is empty for a verb that the resource does not have.
func cell(access string) string {
	if access == inspect.None {
		return "-"
	}
	return access
}
