package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// sedCommand is one command of a script of sed.
type sedCommand struct {
	from, to sedAddress
	negate   bool
	active   bool // the line is between from and to
	name     string
	text     string // of a, i and c
	sub      substitution
}

// sedAddress selects lines. The zero value is no address.
type sedAddress struct {
	line int // -1 is the last
	re   *matcher
}

// substitution is what s does. to is as package regexp takes it.
type substitution struct {
	re            *matcher
	to            string
	global, print bool
}

// sed is one execution.
type sed struct {
	p        *Process
	commands []*sedCommand
	quiet    bool
	out      io.Writer

	n, last int // the line's number and that of the last
	line    string
	deleted bool
	quit    bool
	behind  []string
}

func sedProgram(p *Process, f flags) int {
	scripts, args := f.values['e'], f.args
	if len(scripts) == 0 {
		if len(args) == 0 {
			return p.Failf(1, "no script specified")
		}
		scripts, args = args[:1], args[1:]
	}
	commands, err := p.parseSed(strings.Join(scripts, "\n"), f.has('E'))
	if err != nil {
		return p.Failf(1, "-e expression #1: %v", err)
	}
	s := &sed{p: p, commands: commands, quiet: f.has('n'), out: p.Stdout}
	if !f.has('i') {
		rows, status := p.allLines(args)
		if err := s.run(rows); err != nil {
			return p.Failf(4, "%v", err)
		}
		return status
	}
	for _, name := range args {
		if err := s.inPlace(name); err != nil {
			return p.Failf(4, "%v", err)
		}
	}
	return 0
}

// inPlace edits a file.
func (s *sed) inPlace(name string) error {
	text, err := s.p.readFile(name)
	if err != nil {
		return err
	}
	file, done, err := s.p.create(name, vfs.O_TRUNC)
	if err != nil {
		return err
	}
	defer done()
	out := bufio.NewWriter(file)
	s.out, s.quit = out, false
	if err := s.run(splitLines(text)); err != nil {
		return err
	}
	return out.Flush()
}

// Limits of a script, which bound the work of reading it.
const (
	maxSedScript   = 32 << 10
	maxSedCommands = 1000
)

var (
	sedAddresses = `(?:(\d+)|(\$)|/((?:\\.|\[\^?\]?[^]]*\]|[^\\/])*)/)`
	sedHead      = regexp.MustCompile(`(?s)^(?:` + sedAddresses + `(?:, *` + sedAddresses + `)?)?([ !]*)([sdpqaic])`)
)

// parseSed reads a script.
func (p *Process) parseSed(text string, extended bool) ([]*sedCommand, error) {
	var out []*sedCommand
	for {
		text = strings.TrimLeft(text, " \t\n;")
		if text == "" {
			return out, nil
		}
		if len(text) > maxSedScript || len(out) > maxSedCommands {
			return nil, errComplex
		}
		if err := p.sh.step(1 + len(text)>>6); err != nil {
			return nil, err
		}
		c, rest, err := parseSedCommand(text, extended)
		if err != nil {
			return nil, err
		}
		out, text = append(out, c), rest
	}
}

// parseSedCommand reads one command, and returns what is behind it.
func parseSedCommand(text string, extended bool) (c *sedCommand, rest string, err error) {
	head := sedHead.FindStringSubmatch(text)
	if head == nil {
		return nil, "", fmt.Errorf("unknown command: `%.20s'", text)
	}
	rest = text[len(head[0]):]
	c = &sedCommand{negate: strings.Contains(head[7], "!"), name: head[8]}
	if c.from, err = parseSedAddress(head[1:4], extended); err != nil {
		return nil, "", err
	}
	if c.to, err = parseSedAddress(head[4:7], extended); err != nil {
		return nil, "", err
	}
	switch c.name {
	case "s":
		c.sub, rest, err = parseSubstitution(rest, extended)
	case "a", "i", "c":
		rest = strings.TrimPrefix(strings.TrimLeft(rest, ` \`), "\n")
		c.text, rest, _ = strings.Cut(rest, "\n")
	}
	return c, rest, err
}

// parseSedAddress reads one of a number, "$" and a regular expression, of which the others are empty.
func parseSedAddress(parts []string, extended bool) (a sedAddress, err error) {
	switch {
	case parts[0] != "":
		a.line, err = strconv.Atoi(parts[0])
	case parts[1] != "":
		a.line = -1
	case parts[2] != "":
		a.re, err = compile(goRegexp(parts[2], extended))
	}
	return a, err
}

// parseSubstitution reads "/from/to/" and the letters behind it, with any character in the place of "/".
func parseSubstitution(text string, extended bool) (sub substitution, rest string, err error) {
	if text == "" || text[0] >= utf8.RuneSelf {
		return sub, "", errors.New("unterminated `s' command")
	}
	sep := fmt.Sprintf(`\x{%x}`, text[0])
	other := `\\.|[^\\` + sep + `]`
	expr := `(?s)^.((?:\[\^?\]?[^]]*\]|` + other + `)*)` + sep + `((?:` + other + `)*)` + sep + `(\w*)`
	m := regexp.MustCompile(expr).FindStringSubmatch(text)
	if m == nil {
		return sub, "", errors.New("unterminated `s' command")
	}
	if strings.Trim(m[3], "gpiI") != "" {
		return sub, "", errors.New("unknown option to `s'")
	}
	plain := strings.NewReplacer(`\\`, `\\`, `\`+text[:1], text[:1])
	from := plain.Replace(m[1])
	sub.to = goReplacement(plain.Replace(m[2]))
	sub.print = strings.Contains(m[3], "p")
	sub.global = strings.Contains(m[3], "g") && !strings.HasPrefix(from, "^")
	from = goRegexp(from, extended)
	if strings.ContainsAny(m[3], "iI") {
		from = "(?i)" + from
	}
	sub.re, err = compile(from)
	return sub, text[len(m[0]):], err
}

var replacementPart = regexp.MustCompile(`(?s)\\.|[&$]`)

// goReplacement writes what sed replaces a match with as package regexp takes it.
func goReplacement(text string) string {
	return replacementPart.ReplaceAllStringFunc(text, func(part string) string {
		switch part {
		case "$":
			return "$$"
		case "&":
			return "${0}"
		case `\n`:
			return "\n"
		}
		if isNumber(part[1:]) {
			return "${" + part[1:] + "}"
		}
		return part[1:]
	})
}

func (s *sed) run(rows []string) error {
	s.last = len(rows)
	for i, row := range rows {
		if err := s.p.step(); err != nil {
			return err
		}
		s.n, s.line, s.deleted, s.behind = i+1, row, false, nil
		if err := s.apply(); err != nil {
			return err
		}
		if !s.deleted && !s.quiet {
			s.behind = append([]string{s.line}, s.behind...)
		}
		for _, text := range s.behind {
			if err := s.write(text); err != nil {
				return err
			}
		}
		if s.quit {
			return nil
		}
	}
	return nil
}

func (s *sed) write(line string) error {
	_, err := io.WriteString(s.out, line+"\n")
	return err
}

// apply runs the commands that select the line.
func (s *sed) apply() (err error) {
	for _, c := range s.commands {
		if s.deleted || s.quit || err != nil {
			return err
		}
		selected := s.selected(c)
		if s.p.sh.err != nil {
			return s.p.sh.err
		}
		if selected == c.negate {
			continue
		}
		switch c.name {
		case "s":
			err = s.substitute(c.sub)
		case "p":
			err = s.write(s.line)
		case "q":
			s.quit = true
		case "d":
			s.deleted = true
		case "a":
			s.behind = append(s.behind, c.text)
		case "i":
			err = s.write(c.text)
		case "c":
			s.deleted = true
			if !c.active { // a range is changed to the text at its last line
				err = s.write(c.text)
			}
		}
	}
	return err
}

func (s *sed) at(a sedAddress) bool {
	if a.re != nil {
		return a.re.find(s.p.sh, s.line) != nil
	}
	return a.line == s.n || a.line == -1 && s.n == s.last
}

func (s *sed) selected(c *sedCommand) bool {
	switch {
	case c.from == sedAddress{}:
		return true
	case c.active:
		c.active = !s.at(c.to) && (c.to.line <= 0 || s.n < c.to.line)
		return true
	}
	selected := s.at(c.from)
	c.active = selected && c.to != sedAddress{} && (c.to.line <= 0 || c.to.line > s.n)
	return selected
}

func (s *sed) substitute(sub substitution) error {
	limit := s.p.sh.r.limits.String
	var b []byte
	rest, changed := s.line, false
	for sub.global || !changed {
		found := sub.re.find(s.p.sh, rest)
		if !s.p.sh.ok() {
			return s.p.sh.err
		}
		if found == nil {
			break
		}
		changed = true
		start, end := found[0], found[1]
		if len(b)+len(rest)+len(sub.to)+strings.Count(sub.to, "${")*(end-start) > limit {
			return s.p.sh.r.kill("string")
		}
		b = append(b, rest[:start]...)
		b = sub.re.ExpandString(b, sub.to, rest, found)
		if start == end && end < len(rest) { // an empty match: the next one is behind the next character
			b = append(b, rest[end])
			end++
		}
		if rest = rest[end:]; rest == "" {
			break
		}
	}
	if !changed {
		return nil
	}
	s.line = string(b) + rest
	if sub.print {
		return s.write(s.line)
	}
	return nil
}
