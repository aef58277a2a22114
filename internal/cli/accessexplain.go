package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func newAccessExplain(g *globals) *cobra.Command {
	var output string
	q := inspect.Question{}
	cmd := &cobra.Command{
		Use: "explain (--as-seed NAME | --as-extension NAMESPACE/NAME | --as-stack NAMESPACE/NAME) VERB " +
			"RESOURCE[/SUBRESOURCE] [[NAMESPACE/]NAME]",
		Short: "Say whether a request is allowed, by which rule, and how the object leads to the seed",
		Long: `Say whether the garden allows a request of a gardenlet, an extension or a stack, by which rule, and the path through the graph of
dependencies from the object to the seed; or else the nearest reason why not.

RESOURCE is a plural, singular or short name, with its group where that is needed: secret, shoots, cb, leases.coordination.k8s.io.
An object in a namespace is NAMESPACE/NAME; "NAMESPACE/" alone, or -n, is the whole namespace.

The exit status is 0 if the request is allowed, and 1 if it is not or the question could not be answered (then standard
output is empty); 2 for wrong usage, 3 if the landscape does not run.`,
		Example: `  # May the gardenlet of seed local read this secret, and why?
  gardenlite access explain --as-seed local get secret garden-dev/sample
  # An extension on it, and a subresource
  gardenlite access explain --as-extension seed-local/extension-provider-local patch shoots/status garden-dev/my-shoot
  # All Shoots of the seed
  gardenlite access explain --as-seed local list shoots -l name.seed.gardener.cloud/local=true
  # All objects of a namespace, as JSON
  gardenlite access explain --as-seed local list secrets seed-local/ -o json`,
		Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: completeArgs(cobra.FixedCompletions(authorizer.AllVerbs(), cobra.ShellCompDirectiveNoFileComp),
			completeNames(func(ctx context.Context) []string { return namesToComplete(ctx, g).Resources })),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(q.Validate(), readQuestion(&q, args)); err != nil {
				return err
			}
			return explainAccess(cmd.Context(), g, q, output)
		},
	}
	addUserFlags(g, cmd, &q.User)
	cmd.Flags().StringVarP(&q.Namespace, "namespace", "n", "", "namespace of the object, where it is not said with its name")
	cmd.Flags().StringVarP(&q.LabelSelector, "selector", "l", "", "label selector of the list or watch")
	cmd.Flags().StringVar(&q.FieldSelector, "field-selector", "", "field selector of the list or watch")
	addOutputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

// readQuestion reads VERB RESOURCE [[NAMESPACE/]NAME].
func readQuestion(q *inspect.Question, args []string) error {
	q.Verb, q.Resource = args[0], args[1]
	if len(args) < 3 {
		return nil
	}
	namespace, name, found := strings.Cut(args[2], "/")
	switch {
	case !found:
		q.Name = args[2]
	case namespace == "" || strings.Contains(name, "/"):
		return usage.Errorf("%q: an object is NAME, or NAMESPACE/NAME", args[2])
	case q.Namespace != "" && q.Namespace != namespace:
		return usage.Errorf("%q is in another namespace than -n %s", args[2], q.Namespace)
	default:
		q.Namespace, q.Name = namespace, name
	}
	return nil
}

func explainAccess(ctx context.Context, g *globals, q inspect.Question, output string) error {
	client, err := g.inspector()
	if err != nil {
		return err
	}
	e, err := client.Explain(ctx, q)
	if err != nil {
		return err
	}
	if err := printAs(g.out, output, e, func() { printExplanation(g.out, e) }); err != nil {
		return err
	}
	if !e.Allowed {
		return &exitError{code: exitNotAllowed}
	}
	return nil
}

// printExplanation prints the answer in the first line, and the reasons below it.
func printExplanation(out io.Writer, e *inspect.Explanation) {
	answer := "no"
	if e.Allowed {
		answer = "yes, by " + e.By
	}
	printf(out, "%s: %s\n\n", answer, request(e))
	field := func(name, value string) {
		if value != "" {
			printf(out, "%-16s%s\n", name, value)
		}
	}
	field("Who", e.Identity)
	field("", "user "+e.User)
	if e.RBAC.Allowed {
		field("RBAC", strings.TrimPrefix(e.RBAC.Reason, "RBAC: "))
	} else {
		field("RBAC", "does not allow it")
	}
	field("SeedAuthorizer", e.SeedAuthorizer.Reason)
	field("Rule", e.SeedAuthorizer.Rule)
	title := "Path"
	if !e.SeedAuthorizer.Allowed {
		title = "Leads to" // another seed, or none
	}
	for i, vertex := range e.SeedAuthorizer.Path {
		if i == 0 {
			field(title, vertex.String())
		} else {
			printf(out, "%-16s%s→ %s\n", "", strings.Repeat("  ", i-1), vertex)
		}
	}
	if n := len(e.SeedAuthorizer.Path); n > 0 && !e.SeedAuthorizer.Allowed && e.SeedAuthorizer.Path[n-1].Kind.String() != "Seed" {
		field("", "and from there to no seed")
	}
	for _, note := range e.Notes {
		field("Note", note)
	}
}

// request returns the request as the garden understands it, such as "get secrets garden-dev/sample".
func request(e *inspect.Explanation) string {
	text := e.Verb + " " + e.Resource
	if e.Group != "" {
		text += "." + e.Group
	}
	if e.Subresource != "" {
		text += "/" + e.Subresource
	}
	switch {
	case e.Name != "" && e.Namespace != "" && !(e.Resource == "namespaces" && e.Group == ""):
		text += " " + e.Namespace + "/" + e.Name
	case e.Name != "":
		text += " " + e.Name
	case e.Namespace != "":
		text += " in namespace " + e.Namespace
	}
	return text
}
