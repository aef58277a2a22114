package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/sshclient"
)

// addOutputFlag adds -o with the formats given, the first one being the default.
func addOutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], "output format: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, *output) {
			return &landscape.UsageError{Err: fmt.Errorf("-o %q: one of %s", *output, strings.Join(formats, ", "))}
		}
		if next != nil {
			return next(cmd, args)
		}
		return nil
	}
}

// printObject prints a value as JSON or YAML. It returns false if the format is another one.
func printObject(out io.Writer, format string, value any) (bool, error) {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return true, encoder.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(data)
		}
		return true, err
	}
	return false, nil
}

// table prints rows below a header, in which " | " separates the columns.
func table(out io.Writer, header string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " | ", "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// shellQuote quotes a text as one word of a POSIX shell.
func shellQuote(text string) string { return sshclient.Quote(text) }
