// Package manpage writes the manual pages of commands, in the language of troff. It imports nothing of the project.
package manpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes the pages of a command and of all below it that are not hidden into a folder, which it makes. It
// returns their number.
func Write(command *cobra.Command, dir, version string) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("making the folder for the manual pages: %w", err)
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	if err := os.WriteFile(filepath.Join(dir, nameOf(command)+".1"), []byte(page(command, version)), 0o644); err != nil {
		return 0, fmt.Errorf("writing a manual page: %w", err)
	}
	pages := 1
	for _, below := range children(command) {
		n, err := Write(below, dir, version)
		if err != nil {
			return 0, err
		}
		pages += n
	}
	return pages, nil
}

// nameOf returns the name of a command's page: "gardenlite-shoot-create".
func nameOf(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

func children(command *cobra.Command) (all []*cobra.Command) {
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, below)
		}
	}
	return all
}

func page(command *cobra.Command, version string) string {
	var out strings.Builder
	section := func(title string) { fmt.Fprintf(&out, ".SH %s\n", title) }
	fmt.Fprintf(&out, ".TH %s 1 \"\" %s\n", quote(strings.ToUpper(nameOf(command))), quote(version))
	section("NAME")
	fmt.Fprintf(&out, "%s \\- %s\n", escape(nameOf(command)), escape(command.Short))
	section("SYNOPSIS")
	fmt.Fprintf(&out, ".B %s\n", escape(command.UseLine()))
	section("DESCRIPTION")
	text := command.Long
	if text == "" {
		text = command.Short
	}
	prose(&out, text)
	flags := func(title string, set *pflag.FlagSet) {
		if !set.HasAvailableFlags() {
			return
		}
		section(title)
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				option(&out, f)
			}
		})
	}
	flags("OPTIONS", command.NonInheritedFlags())
	flags("GLOBAL OPTIONS", command.InheritedFlags())
	if command.Example != "" {
		section("EXAMPLES")
		literal(&out, command.Example)
	}
	var others []string
	if command.HasParent() {
		others = append(others, nameOf(command.Parent()))
	}
	for _, below := range children(command) {
		others = append(others, nameOf(below))
	}
	if len(others) > 0 {
		section("SEE ALSO")
		for i, name := range others {
			separator := ","
			if i == len(others)-1 {
				separator = ""
			}
			fmt.Fprintf(&out, ".BR %s (1)%s\n", escape(name), separator)
		}
	}
	return out.String()
}

func option(out *strings.Builder, f *pflag.Flag) {
	kind, text := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
		text += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(out, ".TP\n.B %s\n%s\n", escape(name), escape(text))
}

// prose writes paragraphs, which the reader's terminal fills, and indented lines as they are.
func prose(out *strings.Builder, text string) {
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line == "":
			out.WriteString(".PP\n")
		case strings.HasPrefix(line, " "):
			literal(out, line)
		default:
			out.WriteString(escape(line) + "\n")
		}
	}
}

// literal writes lines as they are.
func literal(out *strings.Builder, text string) {
	fmt.Fprintf(out, ".nf\n%s\n.fi\n", escape(strings.TrimRight(text, "\n")))
}

// escape keeps troff from reading a text as requests.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var out strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r > unicode.MaxASCII { // troff reads bytes
			fmt.Fprintf(&out, `\[u%04X]`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }
