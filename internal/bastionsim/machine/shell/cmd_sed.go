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

type sedCommand struct {
	from, to sedAddress
	negate   bool
	active   bool // the line is between from and to
	name     string
	sub      substitution
}

// sedAddress selects lines. The zero value is no address.
type sedAddress struct {
	line int // -1 is the last
	re   *matcher
}

// substitution is the command s. to is a template of package regexp.
type substitution struct {
	re            *matcher
	to            string
	global, print bool
}

type sed struct {
	p        *Process
	commands []*sedCommand
	quiet    bool
	out      io.Writer

	n, last int // the numbers of the current and the last line
	line    string
	deleted bool
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

func (s *sed) inPlace(name string) error {
	text, err := s.p.readFile(name)
	if err != nil {
		return err
	}
	file, done, err := s.p.openFile(name, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC)
	if err != nil {
		return err
	}
	defer done()
	out := bufio.NewWriter(file)
	s.out = out
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
	sedHead      = regexp.MustCompile(`(?s)^(?:` + sedAddresses + `(?:, *` + sedAddresses + `)?)?([ !]*)([sdp])`)
)

func (p *Process) parseSed(text string, extended bool) (out []*sedCommand, err error) {
	for text = strings.TrimLeft(text, " \t\n;"); text != ""; text = strings.TrimLeft(text, " \t\n;") {
		if len(text) > maxSedScript || len(out) > maxSedCommands {
			return nil, errComplex
		}
		if err := p.step(1 + len(text)>>6); err != nil {
			return nil, err
		}
		head := sedHead.FindStringSubmatch(text)
		if head == nil {
			return nil, fmt.Errorf("unknown command: `%.20s'", text)
		}
		c := &sedCommand{negate: strings.Contains(head[7], "!"), name: head[8]}
		if c.from, err = parseSedAddress(head[1:4], extended); err == nil {
			c.to, err = parseSedAddress(head[4:7], extended)
		}
		if text = text[len(head[0]):]; err == nil && c.name == "s" {
			c.sub, text, err = parseSubstitution(text, extended)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// parseSedAddress parses an address: a number, "$" or a regular expression. The other two parts are empty.
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

// parseSubstitution parses "/from/to/" and the letters after it. Any character may take the place of "/".
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

// goReplacement converts the replacement of a sed command to a template of package regexp.
func goReplacement(text string) string {
	return replacementPart.ReplaceAllStringFunc(text, func(part string) string {
		switch part {
		case "$", `\$`:
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
		if err := s.p.step(1); err != nil {
			return err
		}
		s.n, s.line, s.deleted = i+1, row, false
		err := s.apply()
		if err == nil && !s.deleted && !s.quiet {
			err = s.write(s.line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sed) write(line string) error {
	_, err := io.WriteString(s.out, line+"\n")
	return err
}

func (s *sed) apply() (err error) {
	for _, c := range s.commands {
		if s.deleted || err != nil {
			return err
		}
		selected := s.selected(c)
		if s.p.err != nil {
			return s.p.err
		}
		switch {
		case selected == c.negate:
		case c.name == "s":
			err = s.substitute(c.sub)
		case c.name == "p":
			err = s.write(s.line)
		default:
			s.deleted = true
		}
	}
	return err
}

func (s *sed) at(a sedAddress) bool {
	if a.re != nil {
		return a.re.find(s.p.shell, s.line) != nil
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
	sh := s.p.shell
	line, changed := sub.re.replace(sh, s.line, sub.global, func(out []byte, text string, match []int) []byte {
		if len(out)+len(sub.to)+strings.Count(sub.to, "${")*(match[1]-match[0]) > maxString {
			sh.kill("string")
			return out
		}
		return sub.re.ExpandString(out, sub.to, text, match)
	})
	if !sh.ok() || !changed {
		return errors.Join(sh.err, sh.stopErr)
	}
	s.line = line
	if sub.print {
		return s.write(s.line)
	}
	return nil
}
