package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// mention is a command of gardenlite in inline code, after a prompt, or in an example of a help text.
var mention = regexp.MustCompile("(?m)`(?:bin/)?gardenlite ([^`]+)`|^(?:\\$ | +)gardenlite (.+)$")

// afterCommand is what follows a command of gardenlite in its line.
var afterCommand = regexp.MustCompile(`\s(#|&&|\||\[?--)\s[\s\S]*`)

// TestMentionedCommands: the pages and the help texts name commands and flags that there are.
func TestMentionedCommands(t *testing.T) {
	root := newRoot(streams{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", ".github/ISSUE_TEMPLATE/*"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(file)] = string(text)
		}
	}
	for line, want := range map[string]string{"seed ad x": "ad", "lists": "lists", "up -d --prt 0": "--prt", "up -x": "-x",
		"exec --keep -- go test --count 1": "", "ssh DIR [-L PORT] && kubectl --context x": "", "list # all --of them": ""} {
		if wrong := unknownWord(root, line); wrong != want {
			t.Errorf("%s: there is no %q, want %q", line, wrong, want)
		}
	}
	addHelp(root, texts)
	mentions := 0
	for where, text := range texts {
		for _, found := range mention.FindAllStringSubmatch(text, -1) {
			mentions++
			if wrong := unknownWord(root, found[1]+found[2]); wrong != "" {
				t.Errorf("%s: %s: there is no %s", where, strings.TrimSpace(found[0]), wrong)
			}
		}
	}
	if mentions < 200 {
		t.Errorf("only %d commands are mentioned: the pages are not read", mentions)
	}
}

// addHelp adds the help texts of a command and of those below it.
func addHelp(command *cobra.Command, texts map[string]string) {
	texts[command.CommandPath()] = command.Long + "\n" + command.Example
	for _, below := range command.Commands() {
		addHelp(below, texts)
	}
}

// unknownWord returns the first command or flag in a command line that does not exist.
func unknownWord(command *cobra.Command, line string) string {
	words := strings.Fields(afterCommand.ReplaceAllString(line, ""))
	for len(words) > 0 && command.HasSubCommands() && !strings.HasPrefix(words[0], "-") {
		below, _, err := command.Find(words[:1])
		if err != nil || below == command {
			return words[0]
		}
		command, words = below, words[1:]
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	for _, word := range words {
		name, _, _ := strings.Cut(strings.Trim(word, `[](),"`), "=")
		switch {
		case strings.HasPrefix(name, "--"):
			if command.Flag(name[2:]) == nil {
				return name
			}
		case strings.HasPrefix(name, "-") && command.Flags().ShorthandLookup(name[1:2]) == nil &&
			command.InheritedFlags().ShorthandLookup(name[1:2]) == nil:
			return name
		}
	}
	return ""
}
