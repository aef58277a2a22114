package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// sedCommand is one command of a script of sed.
type sedCommand struct {
	from, to sedAddress
	negate   bool
	active   bool // within from and to
	name     byte
	re       *matcher
	text     string
	global   bool
	print    bool
	nth      int
	block    []*sedCommand
}

type sedAddress struct {
	line int // -1 is the last
	re   *matcher
}

func (a sedAddress) none() bool { return a.line == 0 && a.re == nil }

// sedParser reads a script of sed.
type sedParser struct {
	text     string
	extended bool
	depth    int
}

func sedProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "nErise:f:z", map[string]byte{"quiet": 'n', "silent": 'n', "regexp-extended": 'E', "in-place": 'i', "expression": 'e'}, false)
	for err != nil && strings.Contains(err.Error(), "invalid option") { // -i.bak
		return p.Failf(1, "%v", err)
	}
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	scripts, args := f.values['e'], f.args
	if len(scripts) == 0 {
		if len(args) == 0 {
			return p.Failf(1, "no script specified")
		}
		scripts, args = args[:1], args[1:]
	}
	parser := &sedParser{text: strings.Join(scripts, "\n"), extended: f.has('E') || f.has('r')}
	commands, err := parser.commands()
	if err != nil {
		return p.Failf(1, "-e expression #1: %v", err)
	}
	s := &sed{p: p, commands: commands, quiet: f.has('n')}
	if !f.has('i') {
		rows, status := p.allLines(args)
		if err := s.run(rows, p.Stdout); err != nil {
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
		err = s.run(splitLines(text), &stream{sh: p.sh, file: out.file()})
		if err == nil {
			var info fs.FileInfo
			if info, err = p.FS.Stat(p.Path(name)); err == nil {
				err = p.FS.WriteFile(p.Path(name), out.data, info.Mode())
			}
		}
		if err != nil {
			return p.Failf(4, "%v", describe(name, err))
		}
	}
	return s.status
}

func (p *sedParser) skip(chars string) { p.text = strings.TrimLeft(p.text, chars) }

func (p *sedParser) commands() ([]*sedCommand, error) {
	if p.depth++; p.depth > 50 {
		return nil, errors.New("too many {")
	}
	defer func() { p.depth-- }()
	var out []*sedCommand
	for {
		p.skip(" \t\n;")
		if p.text == "" {
			return out, nil
		}
		if p.text[0] == '}' {
			p.text = p.text[1:]
			return out, nil
		}
		if p.text[0] == '#' {
			_, p.text, _ = strings.Cut(p.text, "\n")
			continue
		}
		c, err := p.command()
		if err != nil {
			return nil, err
		}
		if out = append(out, c); len(out) > 1000 {
			return nil, errors.New("too many commands")
		}
	}
}

func (p *sedParser) command() (*sedCommand, error) {
	c := &sedCommand{}
	var err error
	if c.from, err = p.address(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.text, ",") {
		p.text = p.text[1:]
		if c.to, err = p.address(); err != nil || c.to.none() {
			return nil, cmp.Or(err, errors.New("unexpected `,'"))
		}
	}
	p.skip(" ")
	for strings.HasPrefix(p.text, "!") {
		c.negate, p.text = true, p.text[1:]
	}
	p.skip(" ")
	if p.text == "" {
		return nil, errors.New("missing command")
	}
	c.name, p.text = p.text[0], p.text[1:]
	switch c.name {
	case '{':
		c.block, err = p.commands()
	case 's':
		err = p.substitution(c)
	case 'y':
		err = errors.New("y is not supported on this machine")
	case 'a', 'i', 'c':
		p.skip(" \\")
		p.text = strings.TrimPrefix(p.text, "\n")
		c.text, p.text, _ = strings.Cut(p.text, "\n")
	case 'q', 'Q':
		digits := len(p.text) - len(strings.TrimLeft(strings.TrimLeft(p.text, " "), "0123456789"))
		c.nth, _ = strconv.Atoi(strings.TrimSpace(p.text[:digits]))
		p.text = p.text[digits:]
	case 'p', 'd', '=', 'n':
	default:
		err = fmt.Errorf("unknown command: `%c'", c.name)
	}
	return c, err
}

func (p *sedParser) address() (sedAddress, error) {
	p.skip(" ")
	switch {
	case p.text == "":
		return sedAddress{}, nil
	case p.text[0] == '$':
		p.text = p.text[1:]
		return sedAddress{line: -1}, nil
	case p.text[0] >= '0' && p.text[0] <= '9':
		end := len(p.text) - len(strings.TrimLeft(p.text, "0123456789"))
		n, err := strconv.Atoi(p.text[:end])
		p.text = p.text[end:]
		return sedAddress{line: n}, err
	case p.text[0] == '/' || p.text[0] == '\\' && len(p.text) > 1:
		p.text = strings.TrimPrefix(p.text, "\\")
		sep := p.text[0]
		p.text = p.text[1:]
		expr, err := p.until(sep, true)
		if err != nil {
			return sedAddress{}, err
		}
		if strings.HasPrefix(p.text, "I") {
			expr, p.text = "(?i)"+expr, p.text[1:]
		}
		re, err := compile(goRegexp(expr, p.extended))
		return sedAddress{re: re}, err
	}
	return sedAddress{}, nil
}

// until reads up to a separator that has no backslash before it.
func (p *sedParser) until(sep byte, expr bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(p.text); i++ {
		c := p.text[i]
		switch {
		case c == '\\' && i+1 < len(p.text):
			i++
			if p.text[i] != sep || expr && strings.IndexByte(`.*[]^$`, sep) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(p.text[i])
		case expr && c == '[':
			end := max(1, bracketEnd(p.text[i:]))
			b.WriteString(p.text[i : i+end])
			i += end - 1
		case c == sep:
			p.text = p.text[i+1:]
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("unterminated `s' command or address regex")
}

func (p *sedParser) substitution(c *sedCommand) error {
	if p.text == "" {
		return errors.New("unterminated `s' command")
	}
	sep := p.text[0]
	p.text = p.text[1:]
	expr, err := p.until(sep, true)
	if err != nil {
		return err
	}
	if c.text, err = p.until(sep, false); err != nil {
		return err
	}
	prefix := ""
	for p.text != "" && strings.IndexByte("gpiI0123456789", p.text[0]) >= 0 {
		switch flag := p.text[0]; flag {
		case 'g':
			c.global = true
		case 'p':
			c.print = true
		case 'i', 'I':
			prefix = "(?i)"
		default:
			c.nth = c.nth*10 + int(flag-'0')
		}
		if p.text = p.text[1:]; c.nth > 1<<20 {
			return errors.New("number too large")
		}
	}
	c.re, err = compile(prefix + goRegexp(expr, p.extended))
	return err
}

// sed is one execution.
type sed struct {
	p        *Process
	commands []*sedCommand
	quiet    bool
	status   int
	out      io.Writer
	rows     []string
	n        int
	line     string
	deleted  bool
	quit     bool
	behind   []string
}

func (s *sed) run(rows []string, out io.Writer) error {
	s.rows, s.out = rows, out
	for s.n = 0; s.n < len(s.rows) && !s.quit; s.n++ {
		s.line, s.deleted, s.behind = s.rows[s.n], false, nil
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

func (s *sed) at(a sedAddress) (bool, error) {
	switch {
	case a.re != nil:
		return a.re.find(s.p.sh, s.line) != nil, s.p.sh.err
	case a.line == -1:
		return s.n == len(s.rows)-1, nil
	}
	return a.line == s.n+1, nil
}

func (s *sed) selected(c *sedCommand) (bool, error) {
	if c.from.none() {
		return true, nil
	}
	if c.to.none() {
		return s.at(c.from)
	}
	if !c.active {
		ok, err := s.at(c.from)
		c.active = ok && (c.to.line <= 0 || c.to.line > s.n+1)
		return ok, err
	}
	ends, err := s.at(c.to)
	c.active = !ends && (c.to.line <= 0 || s.n+1 < c.to.line)
	return true, err
}

func (s *sed) apply(commands []*sedCommand) error {
	for _, c := range commands {
		if s.deleted || s.quit {
			return nil
		}
		ok, err := s.selected(c)
		if err != nil {
			return err
		}
		if ok == c.negate {
			continue
		}
		if err := s.do(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *sed) do(c *sedCommand) error {
	switch c.name {
	case '{':
		return s.apply(c.block)
	case 'd':
		s.deleted = true
	case 'p':
		return s.write(s.line)
	case '=':
		return s.write(strconv.Itoa(s.n + 1))
	case 'q', 'Q':
		s.quit, s.status, s.deleted = true, c.nth, s.deleted || c.name == 'Q'
	case 'n':
		if !s.quiet {
			if err := s.write(s.line); err != nil {
				return err
			}
		}
		if s.n+1 >= len(s.rows) {
			s.deleted, s.quit = true, true
			return nil
		}
		s.n++
		s.line = s.rows[s.n]
	case 'a':
		s.behind = append(s.behind, c.text)
	case 'i':
		return s.write(c.text)
	case 'c':
		s.deleted = true
		if !c.active {
			return s.write(c.text)
		}
	case 's':
		return s.substitute(c)
	}
	return nil
}

func (s *sed) substitute(c *sedCommand) error {
	var b strings.Builder
	rest, count, changed := s.line, 0, false
	for {
		found := c.re.find(s.p.sh, rest)
		if !s.p.sh.ok() {
			return s.p.sh.err
		}
		if found == nil || b.Len() > s.p.sh.r.limits.String {
			break
		}
		count++
		b.WriteString(rest[:found[0]])
		if count >= max(1, c.nth) {
			b.WriteString(replacement(c.text, rest, found))
			changed = true
		} else {
			b.WriteString(rest[found[0]:found[1]])
		}
		if found[1] == found[0] {
			if found[0] >= len(rest) {
				rest = ""
				break
			}
			b.WriteByte(rest[found[0]])
			found[1]++
		}
		rest = rest[found[1]:]
		if changed && !c.global || rest == "" {
			break
		}
	}
	b.WriteString(rest)
	if b.Len() > s.p.sh.r.limits.String {
		return s.p.sh.r.kill("string")
	}
	if !changed {
		return nil
	}
	s.line = b.String()
	if c.print {
		return s.write(s.line)
	}
	return nil
}

// replacement fills in & and \1.
func replacement(text, line string, found []int) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '&':
			b.WriteString(line[found[0]:found[1]])
		case c == '\\' && i+1 < len(text):
			i++
			group := int(text[i] - '0')
			switch {
			case text[i] >= '0' && text[i] <= '9' && 2*group+1 < len(found) && found[2*group] >= 0:
				b.WriteString(line[found[2*group]:found[2*group+1]])
			case text[i] >= '0' && text[i] <= '9':
			case text[i] == 'n':
				b.WriteByte('\n')
			case text[i] == 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
