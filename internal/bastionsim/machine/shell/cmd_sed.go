package shell

import (
	"cmp"
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
	run      sedAction
}

type sedAction func(s *sed, c *sedCommand) error

// sedAddress selects lines. The zero value is no address.
type sedAddress struct {
	line int // -1 is the last
	re   *matcher
}

func sedProgram(p *Process, f flags) int {
	scripts, args := f.values['e'], f.args
	if len(scripts) == 0 {
		if len(args) == 0 {
			return p.Failf(1, "no script specified")
		}
		scripts, args = args[:1], args[1:]
	}
	parser := &sedParser{p: p, text: strings.Join(scripts, "\n"), extended: f.has('E')}
	commands, err := parser.commands(0)
	if err != nil {
		return p.Failf(1, "-e expression #1: %v", err)
	}
	s := &sed{p: p, commands: commands, quiet: f.has('n'), out: p.Stdout}
	if !f.has('i') {
		rows, status := p.allLines(args)
		if err := s.run(rows); err != nil {
			return p.Failf(4, "%v", err)
		}
		return max(status, s.status)
	}
	for _, name := range args {
		text, err := p.readFile(name)
		if err != nil {
			return p.Fail(err)
		}
		out := &sink{r: p.sh.r}
		s.out, s.quit = &stream{sh: p.sh, file: out.file()}, false
		if err := s.run(splitLines(text)); err != nil {
			return p.Failf(4, "%v", describe(name, err))
		}
		file, done, err := p.create(name, vfs.O_TRUNC)
		if err == nil {
			_, err = file.Write(out.data)
			done()
		}
		if err != nil {
			return p.Failf(4, "%v", err)
		}
	}
	return s.status
}

// Limits of a script, which bound the work of reading it.
const (
	maxSedScript   = 32 << 10
	maxSedCommands = 1000
	maxSedDepth    = 50
)

var (
	sedAddresses = `(?:(\d+)|(\$)|/((?:\\.|\[\^?\]?[^]]*\]|[^\\/])*)/)`
	sedHead      = regexp.MustCompile(`(?s)^(?:` + sedAddresses + `(?:, *` + sedAddresses + `)?)?([ !]*)([a-z={])`)
)

// sedParser reads a script of sed.
type sedParser struct {
	p        *Process
	text     string
	extended bool
}

// commands reads commands up to the end of the script or of a block.
func (p *sedParser) commands(depth int) ([]*sedCommand, error) {
	var out []*sedCommand
	for {
		p.text = strings.TrimLeft(p.text, " \t\n;")
		switch {
		case len(p.text) > maxSedScript || len(out) > maxSedCommands || depth > maxSedDepth:
			return nil, errComplex
		case p.text == "":
			return out, nil
		case p.text[0] == '}':
			p.text = p.text[1:]
			return out, nil
		case p.text[0] == '#':
			_, p.text, _ = strings.Cut(p.text, "\n")
			continue
		}
		head := sedHead.FindStringSubmatch(p.text)
		if head == nil {
			return nil, fmt.Errorf("unknown command: `%.20s'", p.text)
		}
		p.text = p.text[len(head[0]):]
		c := &sedCommand{negate: strings.Contains(head[7], "!")}
		var errFrom, errTo, err error
		c.from, errFrom = p.address(head[1:4])
		c.to, errTo = p.address(head[4:7])
		c.run, err = p.action(head[8], depth)
		if err = cmp.Or(errFrom, errTo, err, p.p.sh.step(1+len(p.text)>>6)); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
}

// address is one of a number, "$" and a regular expression, of which the others are empty.
func (p *sedParser) address(parts []string) (a sedAddress, err error) {
	switch {
	case parts[0] != "":
		a.line, err = strconv.Atoi(parts[0])
	case parts[1] != "":
		a.line = -1
	case parts[2] != "":
		a.re, err = compile(goRegexp(parts[2], p.extended))
	}
	return a, err
}

func (p *sedParser) action(name string, depth int) (sedAction, error) {
	switch name {
	case "{":
		block, err := p.commands(depth + 1)
		return func(s *sed, _ *sedCommand) error { return s.apply(block) }, err
	case "s":
		return p.substitution()
	case "y":
		return p.transliteration()
	case "d":
		return func(s *sed, _ *sedCommand) error { s.deleted = true; return nil }, nil
	case "p":
		return func(s *sed, _ *sedCommand) error { return s.write(s.line) }, nil
	case "=":
		return func(s *sed, _ *sedCommand) error { return s.write(strconv.Itoa(s.n)) }, nil
	case "q":
		return func(s *sed, _ *sedCommand) error { s.quit = true; return nil }, nil
	case "a", "i", "c":
		p.text = strings.TrimLeft(p.text, " \\")
		text, rest, _ := strings.Cut(strings.TrimPrefix(p.text, "\n"), "\n")
		p.text = rest
		return func(s *sed, c *sedCommand) error {
			s.deleted = s.deleted || name == "c"
			switch {
			case name == "a":
				s.behind = append(s.behind, text)
			case name == "i" || !c.active: // a range is changed to the text at its last line
				return s.write(text)
			}
			return nil
		}, nil
	}
	return nil, fmt.Errorf("unknown command: `%s'", name)
}

// halves reads "/from/to/" and the letters and numbers behind it, with whatever is in the place of "/".
func (p *sedParser) halves() (from, to, options string, err error) {
	if p.text == "" || p.text[0] >= utf8.RuneSelf {
		return "", "", "", errUnterminated
	}
	sep := fmt.Sprintf(`\x{%x}`, p.text[0])
	other := `\\.|[^\\` + sep + `]`
	expr := `(?s)^.((?:\[\^?\]?[^]]*\]|` + other + `)*)` + sep + `((?:` + other + `)*)` + sep + `(\w*)`
	m := regexp.MustCompile(expr).FindStringSubmatch(p.text)
	if m == nil {
		return "", "", "", errUnterminated
	}
	plain := strings.NewReplacer(`\\`, `\\`, `\`+p.text[:1], p.text[:1])
	p.text = p.text[len(m[0]):]
	return plain.Replace(m[1]), plain.Replace(m[2]), m[3], nil
}

var errUnterminated = errors.New("unterminated `s' command")

func (p *sedParser) transliteration() (sedAction, error) {
	from, to, _, err := p.halves()
	chars := []rune(to)
	if err != nil || len([]rune(from)) != len(chars) {
		return nil, cmp.Or(err, errors.New("strings for `y' command are different lengths"))
	}
	var pairs []string
	for i, c := range []rune(from) {
		pairs = append(pairs, string(c), string(chars[i]))
	}
	replacer := strings.NewReplacer(pairs...)
	return func(s *sed, _ *sedCommand) error { s.line = replacer.Replace(s.line); return nil }, nil
}

// substitution is what s does.
type substitution struct {
	re            *matcher
	to            string
	first         int // the match that is the first to be replaced
	global, print bool
}

func (p *sedParser) substitution() (sedAction, error) {
	expr, to, options, err := p.halves()
	if err != nil {
		return nil, err
	}
	sub := &substitution{to: to, print: strings.Contains(options, "p")}
	sub.global = strings.Contains(options, "g") && !strings.HasPrefix(expr, "^")
	expr = goRegexp(expr, p.extended)
	if strings.ContainsAny(options, "iI") {
		expr = "(?i)" + expr
	}
	if number := strings.Trim(options, "gpiI"); number != "" {
		if sub.first, err = strconv.Atoi(number); err != nil {
			return nil, errors.New("unknown option to `s'")
		}
	}
	sub.re, err = compile(expr)
	return sub.run, err
}

// sed is one execution.
type sed struct {
	p        *Process
	commands []*sedCommand
	quiet    bool
	status   int
	out      io.Writer

	n, last int // the line's number and that of the last
	line    string
	deleted bool
	quit    bool
	behind  []string
}

func (s *sed) run(rows []string) error {
	s.last = len(rows)
	for i, row := range rows {
		s.n, s.line, s.deleted, s.behind = i+1, row, false, nil
		err := s.p.step()
		if err == nil {
			err = s.apply(s.commands)
		}
		if err == nil && !s.deleted && !s.quiet {
			err = s.write(s.line)
		}
		for _, text := range s.behind {
			if err == nil {
				err = s.write(text)
			}
		}
		if err != nil || s.quit {
			return err
		}
	}
	return nil
}

func (s *sed) write(line string) error {
	_, err := io.WriteString(s.out, line+"\n")
	return err
}

func (s *sed) at(a sedAddress) (bool, error) {
	switch {
	case a.re != nil:
		return a.re.find(s.p.sh, s.line) != nil, s.p.sh.err
	case a.line == -1:
		return s.n == s.last, nil
	}
	return a.line == s.n, nil
}

func (s *sed) selected(c *sedCommand) (bool, error) {
	if c.from == (sedAddress{}) {
		return true, nil
	}
	if !c.active {
		ok, err := s.at(c.from)
		c.active = ok && c.to != (sedAddress{}) && (c.to.line <= 0 || c.to.line > s.n)
		return ok, err
	}
	ends, err := s.at(c.to)
	c.active = !ends && (c.to.line <= 0 || s.n < c.to.line)
	return true, err
}

func (s *sed) apply(commands []*sedCommand) error {
	for _, c := range commands {
		if s.deleted || s.quit {
			return nil
		}
		ok, err := s.selected(c)
		if err == nil && ok != c.negate {
			err = c.run(s, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (sub *substitution) run(s *sed, _ *sedCommand) error {
	limit := s.p.sh.r.limits.String
	var b strings.Builder
	rest, changed := s.line, false
	for count := 1; !changed || sub.global; count++ {
		found := sub.re.find(s.p.sh, rest)
		if !s.p.sh.ok() {
			return s.p.sh.err
		}
		if found == nil {
			break
		}
		end := found[1]
		b.WriteString(rest[:found[0]])
		if count >= sub.first {
			sub.replace(&b, rest, found, limit)
			changed = true
		} else {
			b.WriteString(rest[found[0]:end])
		}
		if found[0] == end && end < len(rest) { // an empty match: the next one is behind the next character
			b.WriteByte(rest[end])
			end++
		}
		if b.Len() > limit {
			return s.p.sh.r.kill("string")
		}
		if rest = rest[end:]; rest == "" {
			break
		}
	}
	if !changed {
		return nil
	}
	if s.line = b.String() + rest; len(s.line) > limit {
		return s.p.sh.r.kill("string")
	}
	if sub.print {
		return s.write(s.line)
	}
	return nil
}

// replace writes what stands for a match, with & and \1 filled in, until that is longer than the limit.
func (sub *substitution) replace(b *strings.Builder, line string, found []int, limit int) {
	for i := 0; i < len(sub.to) && b.Len() <= limit; i++ {
		c, group := sub.to[i], -1
		switch {
		case c == '&':
			group = 0
		case c == '\\' && i+1 < len(sub.to):
			i++
			switch c = sub.to[i]; {
			case c >= '0' && c <= '9':
				group = int(c - '0')
			case c == 'n':
				c = '\n'
			case c == 't':
				c = '\t'
			}
		}
		switch {
		case group < 0:
			b.WriteByte(c)
		case 2*group+1 < len(found) && found[2*group] >= 0:
			b.WriteString(line[found[2*group]:found[2*group+1]])
		}
	}
}
