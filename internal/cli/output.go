package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/usage"
)

// addOutputFlag adds -o with the formats given, the first one being the default.
func addOutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], "output format: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats, *output) {
			return usage.Errorf("-o %q: one of %s", *output, strings.Join(formats, ", "))
		}
		return nil
	}
}

// printAs prints a value as JSON or YAML, and calls printText for any other format.
func printAs(out io.Writer, format string, value any, printText func()) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	}
	printText()
	return nil
}

// plain replaces the characters of a text that a terminal would obey instead of showing: it may come from a cluster.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar // control characters, and those that change the direction of what follows
	}, text)
}

// plainLines is plain for a text of several lines.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n")
}

// table prints rows below a header, in which " | " separates the columns.
func table(out io.Writer, header string, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " | ", "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // the output keeps its first error
}

// completeNames completes a text with names, for which the shell waits for completionTimeout at most.
func completeNames(names func(context.Context) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return names(ctx), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes each argument with its own function. Further arguments have no completion.
func completeArgs(completions ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) < len(completions) {
			return completions[len(args)](cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
