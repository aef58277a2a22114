package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/terminal"
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
		var data bytes.Buffer
		encoder := json.NewEncoder(&data)
		encoder.SetIndent("", "  ")
		err := encoder.Encode(value)
		if err == nil {
			_, err = out.Write(plainJSON(data.Bytes()))
		}
		return err
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

// plainJSON escapes the characters that encoding/json leaves as they are, and a terminal would obey.
func plainJSON(data []byte) []byte {
	var out []byte
	for _, r := range string(data) {
		if r == '\n' || unicode.IsPrint(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, "\\u%04x", unit)
		}
	}
	return out
}

// lines is a text that printf prints in several lines.
type lines string

// plain returns the text with plain lines.
func (l lines) plain() string {
	all := strings.Split(string(l), "\n")
	for i, line := range all {
		all[i] = plain(line)
	}
	return strings.Join(all, "\n")
}

// printf prints a text for people. All text of internal/cli goes through it, because its arguments may come from a
// cluster: none of them moves the cursor, or adds a line unless it is of the type lines.
func printf(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format, plainValues(args)...) // the output keeps its first error
}

// printLine prints the arguments in one line, with spaces between them.
func printLine(out io.Writer, args ...any) {
	fmt.Fprintln(out, plainValues(args)...)
}

func plainValues(args []any) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = plainValue(arg)
	}
	return values
}

func plainValue(arg any) any {
	switch v := arg.(type) {
	case lines:
		return v.plain()
	case error:
		return plain(v.Error())
	case fmt.Stringer:
		return plain(v.String())
	}
	switch v := reflect.ValueOf(arg); {
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool:
		return arg
	case v.Kind() == reflect.String:
		return plain(v.String())
	}
	return plain(fmt.Sprint(arg))
}

// goWords has what Go's packages say of a value that does not fit, and what a user can be told instead.
var goWords = []struct {
	said    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`error unmarshaling JSON: (?:while decoding JSON: )?`), ""},
	{regexp.MustCompile(`json: cannot unmarshal (\S+) into Go struct field \w*\.(\S+) of type \S+`),
		"$2: it has the wrong type, $1"},
	{regexp.MustCompile(`json: cannot unmarshal (\S+) into Go value of type ` +
		`(?:struct \{.*\}|map\[string\]interface ?\{\}|\S+)`),
		"it has the wrong type, $1"},
	{regexp.MustCompile(`strconv\.\w+: parsing ("(?:[^"\\]|\\.)*"): `), "$1: "},
}

// plainError returns the text of an error in words that are not Go's.
func plainError(err error) lines {
	text := err.Error()
	for _, words := range goWords {
		text = words.said.ReplaceAllString(text, words.instead)
	}
	return lines(text)
}

// table prints rows below a header, in which " | " separates the columns. On a terminal, states have colours.
func table(out io.Writer, header string, rows [][]string) {
	newTable(out, header).print(rows)
}

// growingTable is a table of which rows are printed as they come.
type growingTable struct {
	out    io.Writer
	header []string
	layout terminal.Table
}

func newTable(out io.Writer, header string) *growingTable {
	return &growingTable{out: out, header: strings.Split(plain(header), " | ")}
}

// print prints rows, the first time below the header.
func (t *growingTable) print(rows [][]string) {
	var all [][]string
	if t.layout == nil {
		all = append(all, t.header)
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		all = append(all, cells)
	}
	var paint func(int, string) string
	if writer, ok := t.out.(*checkedWriter); ok && writer.colour {
		paint = func(column int, cell string) string {
			if column < len(t.header) && slices.Contains(stateColumns, t.header[column]) {
				return paintState(cell)
			}
			return cell
		}
	}
	_, _ = io.WriteString(t.out, t.layout.Add(all, paint)) // the output keeps its first error
}

// stateColumns are the headers of columns with a state.
var stateColumns = []string{"STATE", "STATUS", "READY"}

const (
	red, green, yellow = "\033[31m", "\033[32m", "\033[33m"
	uncoloured         = "\033[0m"
)

// stateColours has the colour of each state that is neither in progress nor at rest.
var stateColours = map[string]string{
	"Ready": green, "True": green, "Running": green, "Succeeded": green, "Completed": green,
	"Failed": red, "False": red, "Error": red, "Unhealthy": red, "NotReady": red,
	"Starting": yellow, "Stopping": yellow, "Pending": yellow, "Processing": yellow, "Progressing": yellow,
	"Unknown": yellow,
}

// paintState colours a state, such as "Ready" or "Create Processing (40%)", by the first word that has a colour.
func paintState(state string) string {
	for _, word := range strings.Fields(state) {
		if colour, known := stateColours[word]; known {
			return colour + state + uncoloured
		}
	}
	return state
}

// hasColours reports whether a stream shows colours: it is a terminal, and the user has not turned them off.
func (g *globals) hasColours(stream io.Writer) bool {
	return terminal.Is(stream) && !g.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// span returns a duration as all commands print it: "14ms", "3.5s", "42s", "2m5s", "3d4h".
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return max(d, 0).Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// age returns how long ago something was, in whole seconds.
func age(since time.Time) string { return span(time.Since(since).Truncate(time.Second)) }

// moment returns a time as all commands print it: in the local time zone, with its offset.
func moment(t time.Time) string { return t.Local().Format(time.RFC3339) }

// isName reports whether a text can be a completion or the name of an entry in a kubeconfig: shells and other
// programs read it as one word, and not as an option.
var isName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`).MatchString

// completeNames completes a text with names, for which the shell waits for completionTimeout at most. What is no
// name is left out.
func completeNames(names func(context.Context) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		all := slices.DeleteFunc(names(ctx), func(text string) bool { return !isName(text) })
		return all, cobra.ShellCompDirectiveNoFileComp
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
