package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// marker is a comment of a page that says how the block below it is run. CONTRIBUTING.md has their forms.
var marker = regexp.MustCompile(`^<!-- test: (.*) -->$`)

// placeholder is a word that a reader replaces, such as NODE or <name>. Variables are none.
var placeholder = regexp.MustCompile(`(?:^|[^\w${])([A-Z]{2,})(?:[^\w=]|$)|<[a-z-]+>`)

// comment is what a shell does not read of a line.
var comment = regexp.MustCompile(`\s#.*$`)

// script has the commands of a page, each in the line in which the page has it, and the lines that the page shows of
// their output, in its order.
type script struct {
	lines  []string
	shown  []shownLine
	blocks int
}

// shownLine is a line of output in a page.
type shownLine struct {
	number  int
	pattern *regexp.Regexp
}

// block is a fenced block of a page, and what its markers say.
type block struct {
	language string
	skip     bool
	// needs are the programs without which the block is skipped.
	needs, until, file string
	replacements       []*replacement
	// continued is set after a line of a command that goes on in the next line.
	continued bool
}

// replacement is what the commands of a block have in place of a word.
type replacement struct {
	word  *regexp.Regexp
	value string
	used  bool
}

// newScript reads a page.
func newScript(page string) (*script, error) {
	s := &script{}
	var current *block
	next := &block{}
	for i, line := range strings.Split(page, "\n") {
		command, err := "", error(nil)
		language, fence := strings.CutPrefix(line, "```")
		switch found := marker.FindStringSubmatch(line); {
		case fence && current == nil:
			current, next = next, &block{}
			current.language = language
			command, err = s.begin(current)
		case fence:
			command, err = current.end(i + 1)
			current = nil
		case current != nil:
			command, err = s.inside(current, i+1, line)
		case found != nil:
			command, err = next.mark(found[1])
		case strings.Contains(line, "<!-- test"):
			err = fmt.Errorf("the marker is not %s", marker)
		case line != "" && next.marked():
			err = fmt.Errorf("no block follows the marker above")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		s.lines = append(s.lines, command)
	}
	if current != nil || next.marked() {
		return nil, fmt.Errorf("the last block, or the one of the last marker, is missing or has no end")
	}
	return s, nil
}

// mark takes up a marker, and returns what is run in its place.
func (b *block) mark(text string) (command string, err error) {
	key, value, _ := strings.Cut(text, ": ")
	word, by, replaces := strings.Cut(text, "=")
	switch {
	case key == "before" && value != "":
		return value, nil
	case key == "skip" && len(value) > 10: // a reason
		b.skip = true
	case key == "needs" && value != "":
		b.needs = value
	case key == "until" && value != "":
		b.until = value
	case key == "save" && value != "":
		b.file = value
	case replaces && !strings.ContainsAny(word, " :"):
		pattern := regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`)
		b.replacements = append(b.replacements, &replacement{word: pattern, value: by})
	default:
		err = fmt.Errorf("unknown marker %q: skip with a reason, needs, before, until, save, or WORD=VALUE", text)
	}
	return "", err
}

func (b *block) marked() bool {
	return b.skip || b.needs != "" || b.until != "" || b.file != "" || b.replacements != nil
}

// hasCommands reports whether the block is for a shell.
func (b *block) hasCommands() bool {
	return b.language == "sh" || b.language == "bash" || b.language == "console"
}

// begin returns the command in place of a block's first line.
func (s *script) begin(b *block) (string, error) {
	switch {
	case b.file != "":
		return fmt.Sprintf("cat >%s <<'```'", b.file), nil
	case b.hasCommands() && !b.skip:
		s.blocks++
	case b.marked() && !b.hasCommands():
		return "", fmt.Errorf("the marker is for a block of sh, bash or console")
	case b.language == "":
		return "", fmt.Errorf("the block has no language: console has commands after $, text has none")
	}
	command := ""
	if b.needs != "" {
		command = fmt.Sprintf("if type %s >.needs; then ", b.needs)
	}
	if b.until != "" {
		command += "{"
	}
	return strings.TrimSpace(command), nil
}

// end returns the command in place of a block's last line.
func (b *block) end(number int) (string, error) {
	for _, r := range b.replacements {
		if !r.used {
			return "", fmt.Errorf("the block has no %s, which its marker replaces", r.word)
		}
	}
	if b.file != "" {
		return "```", nil
	}
	var commands []string
	if b.until != "" {
		commands = append(commands, fmt.Sprintf("} >.output-%d 2>&1 & until_shown '%s' .output-%[1]d", number, b.until))
	}
	if b.needs != "" {
		commands = append(commands, "fi")
	}
	return strings.Join(commands, "; "), nil
}

// inside returns the command in place of a line of a block, and keeps what the line shows of an output.
func (s *script) inside(b *block, number int, line string) (command string, err error) {
	if b.file != "" {
		return line, nil
	}
	if b.skip || !b.hasCommands() {
		return "", nil
	}
	prompt := false
	if b.language == "console" && !b.continued {
		if line, prompt = strings.CutPrefix(line, "$ "); !prompt {
			return s.output(number, line), nil
		}
	}
	for _, r := range b.replacements {
		r.used = r.used || r.word.MatchString(line)
		line = r.word.ReplaceAllLiteralString(line, r.value)
	}
	if left := placeholder.FindString(comment.ReplaceAllString(line, "")); left != "" {
		return "", fmt.Errorf("nothing says what %q is replaced with: write an example, or the marker WORD=VALUE",
			strings.TrimSpace(left))
	}
	b.continued = strings.HasSuffix(line, `\`)
	return line, nil
}

// output keeps a line of output. If it is an error, the command before it has to fail.
func (s *script) output(number int, line string) (command string) {
	text := regexp.QuoteMeta(strings.TrimSpace(line))
	for _, r := range []struct{ variable, pattern string }{
		{`[0-9a-f]*…`, `.*`},
		{`[0-9]+(\\.[0-9]+)?`, `[0-9.]+`},
		{`\s+`, `\s+`},
	} {
		text = regexp.MustCompile(r.variable).ReplaceAllLiteralString(text, r.pattern)
	}
	s.shown = append(s.shown, shownLine{number, regexp.MustCompile(`^\s*` + text + `\s*$`)})
	if last := len(s.lines) - 1; strings.HasPrefix(line, "Error: ") && s.lines[last] != "" {
		s.lines[last] = "if " + s.lines[last]
		return "then echo \"there is no error\"; exit 1; fi"
	}
	return ""
}

// missing returns the first line that the page shows of the output and that is not in it, after the lines shown before.
func (s *script) missing(output string) (shownLine, bool) {
	lines := strings.Split(output, "\n")
	for _, shown := range s.shown {
		for len(lines) > 0 && !shown.pattern.MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return shown, true
		}
		lines = lines[1:]
	}
	return shownLine{}, false
}
