package commands

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// maxMatched is how much of a line regular expressions look at: they are linear in it.
const maxMatched = 64 << 10

// basic turns a basic regular expression into an extended one: the meaning of a backslash before ( ) { } | + ? swaps.
func basic(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if !strings.ContainsRune("(){}|+?", rune(s[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case strings.ContainsRune("(){}|+?", rune(s[i])):
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func grep(in *invocation) int {
	f := parse(in.Args, "e A B C m f regexp")
	expr := f.get("e", "regexp")
	if !f.has("e", "regexp") {
		if len(f.args) == 0 {
			fail(in, "no pattern")
			return 2
		}
		expr, f.args = f.args[0], f.args[1:]
	}
	name := path.Base(in.Args[0])
	switch {
	case f.has("F") || name == "fgrep":
		expr = regexp.QuoteMeta(expr)
	case !f.has("E", "P") && name != "egrep":
		expr = basic(expr)
	}
	if f.has("x") {
		expr = "^(?:" + expr + ")$"
	}
	if f.has("w") {
		expr = `\b(?:` + expr + `)\b`
	}
	if f.has("i") {
		expr = "(?i)" + expr
	}
	rx, err := shell.Regexp(expr)
	if err != nil {
		fail(in, "%v", err)
		return 2
	}
	g := grepper{in: in, f: f, rx: rx, most: -1}
	if m := f.get("m"); m != "" {
		g.most, _ = strconv.Atoi(m)
	}
	names := f.args
	if f.has("r", "R") {
		names = g.expand(names)
	}
	g.prefix = (len(names) > 1 || f.has("H", "r", "R")) && !f.has("h")
	status := inputs(in, names, g.file)
	switch {
	case status != 0 && !f.has("s"):
		return 2
	case g.found:
		return 0
	}
	return 1
}

type grepper struct {
	in            *invocation
	f             flags
	rx            *regexp.Regexp
	most          int
	prefix, found bool
}

func (g *grepper) expand(names []string) []string {
	var files []string
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, n := range names {
		_ = each(g.in, g.in.Abs(n), true, func(file string, info vfs.Info) error {
			if info.Mode().IsRegular() {
				files = append(files, file)
			}
			return nil
		})
	}
	return files
}

func (g *grepper) file(name string, r io.Reader) error {
	hits, number := 0, 0
	before := ""
	if g.prefix {
		before = name + ":"
	}
	quiet := g.f.has("q", "c", "l", "quiet")
	err := eachLine(g.in, r, func(line string) error {
		number++
		if g.rx.MatchString(line[:min(len(line), maxMatched)]) == g.f.has("v") {
			return nil
		}
		hits++
		g.found = true
		if !quiet {
			at := before
			if g.f.has("n") {
				at += strconv.Itoa(number) + ":"
			}
			if g.f.has("o") {
				line = strings.Join(g.rx.FindAllString(line[:min(len(line), maxMatched)], 1000), "\n"+at)
			}
			if _, err := fmt.Fprintln(g.in.Stdout, at+line); err != nil {
				return err
			}
		}
		if hits == g.most || g.f.has("q", "quiet", "l") {
			return errDone
		}
		return nil
	})
	if err == errDone {
		err = nil
	}
	if g.f.has("c") {
		fmt.Fprintf(g.in.Stdout, "%s%d\n", before, hits)
	}
	if g.f.has("l") && hits > 0 {
		fmt.Fprintln(g.in.Stdout, name)
	}
	return err
}

// sed knows s, d and p, each for all lines, a line, a range of lines or a /pattern/, and -n, -i, -e, -E.
func sed(in *invocation) int {
	f := parse(in.Args, "e expression")
	script := f.get("e", "expression")
	if !f.has("e", "expression") {
		if len(f.args) == 0 {
			return fail(in, "no script specified")
		}
		script, f.args = f.args[0], f.args[1:]
	}
	program, err := parseSed(script, f.has("E", "r"))
	if err != nil {
		return fail(in, "-e expression: %v", err)
	}
	if f.has("i", "in-place") {
		status := 0
		for _, name := range f.args {
			if err := sedInPlace(in, name, program, f.has("n")); err != nil {
				status = fail(in, "%s: %v", name, reason(err))
			}
		}
		return status
	}
	number := 0
	return inputs(in, f.args, func(_ string, r io.Reader) error {
		return eachLine(in, r, func(line string) error {
			number++
			return sedLine(in, in.Stdout, program, f.has("n"), number, line)
		})
	})
}

func sedInPlace(in *invocation, name string, program []sedCommand, quiet bool) error {
	data, err := in.FS.ReadFile(in.Abs(name))
	if err != nil {
		return err
	}
	var out strings.Builder
	number := 0
	err = eachLine(in, strings.NewReader(string(data)), func(line string) error {
		number++
		if out.Len() > in.MaxText {
			return shell.ErrText
		}
		return sedLine(in, &out, program, quiet, number, line)
	})
	if err != nil {
		return err
	}
	return in.FS.WriteFile(in.Abs(name), []byte(out.String()), 0o644)
}

type sedCommand struct {
	from, to int
	where    *regexp.Regexp
	verb     byte
	rx       *regexp.Regexp
	with     string
	all, p   bool
}

func sedLine(in *invocation, w io.Writer, program []sedCommand, quiet bool, number int, line string) error {
	for _, c := range program {
		if c.from > 0 && (number < c.from || number > c.to) || c.where != nil && !c.where.MatchString(line[:min(len(line), maxMatched)]) {
			continue
		}
		switch c.verb {
		case 'd':
			return nil
		case 'p':
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		case 's':
			changed, hit, err := c.substitute(line, in.MaxText)
			if err != nil {
				return err
			}
			if line = changed; hit && c.p {
				fmt.Fprintln(w, line)
			}
		}
	}
	if quiet {
		return nil
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func (c sedCommand) substitute(line string, most int) (string, bool, error) {
	if len(line) > maxMatched {
		return line, false, shell.ErrText
	}
	n := 1
	if c.all {
		n = -1
	}
	found := c.rx.FindAllStringSubmatchIndex(line, n)
	if found == nil {
		return line, false, nil
	}
	var out []byte
	last := 0
	for _, m := range found {
		out = append(out, line[last:m[0]]...)
		if out = c.rx.ExpandString(out, c.with, line, m); len(out) > most {
			return line, false, shell.ErrText
		}
		last = m[1]
	}
	return string(append(out, line[last:]...)), true, nil
}

func parseSed(script string, extended bool) ([]sedCommand, error) {
	var program []sedCommand
	s := strings.TrimLeft(script, " ;\n")
	for s != "" {
		if len(program) > 100 {
			return nil, fmt.Errorf("too many commands")
		}
		c, rest, err := parseSedCommand(s, extended)
		if err != nil {
			return nil, err
		}
		program = append(program, c)
		s = strings.TrimLeft(rest, " ;\n")
	}
	return program, nil
}

func sedRegexp(s string, extended bool) (*regexp.Regexp, error) {
	if !extended {
		s = basic(s)
	}
	return shell.Regexp(s)
}

func parseSedCommand(s string, extended bool) (c sedCommand, rest string, err error) {
	if digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]; digits != "" {
		c.from, _ = strconv.Atoi(digits)
		c.to, s = c.from, s[len(digits):]
		if strings.HasPrefix(s, ",") {
			s = s[1:]
			digits = s[:len(s)-len(strings.TrimLeft(s, "0123456789$"))]
			if c.to, err = strconv.Atoi(digits); err != nil {
				c.to = 1 << 30
			}
			s = s[len(digits):]
		}
	} else if s[0] == '/' {
		parts, after, ok := splitSed(s[1:], '/', 1)
		if !ok {
			return c, "", fmt.Errorf("unterminated address regex")
		}
		if c.where, err = sedRegexp(parts[0], extended); err != nil {
			return c, "", err
		}
		s = after
	}
	if s == "" {
		return c, "", fmt.Errorf("missing command")
	}
	c.verb, s = s[0], s[1:]
	switch {
	case c.verb == 'd' || c.verb == 'p':
		return c, s, nil
	case c.verb != 's' || s == "":
		return c, "", fmt.Errorf("unknown command: `%c'", c.verb)
	}
	parts, after, ok := splitSed(s[1:], s[0], 2)
	if !ok {
		return c, "", fmt.Errorf("unterminated `s' command")
	}
	flags := after[:len(after)-len(strings.TrimLeft(after, "gIip"))]
	c.all, c.p = strings.Contains(flags, "g"), strings.Contains(flags, "p")
	if strings.ContainsAny(flags, "Ii") {
		extendedPart := parts[0]
		if !extended {
			extendedPart = basic(extendedPart)
		}
		c.rx, err = shell.Regexp("(?i)" + extendedPart)
	} else {
		c.rx, err = sedRegexp(parts[0], extended)
	}
	c.with = replacement(parts[1])
	return c, after[len(flags):], err
}

// splitSed cuts n parts that end with the separator; a backslash before it makes it plain.
func splitSed(s string, sep byte, n int) (parts []string, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if i++; s[i] != sep {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case s[i] == sep:
			parts = append(parts, b.String())
			if b.Reset(); len(parts) == n {
				return parts, s[i+1:], true
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return nil, "", false
}

// replacement turns & and \1 into what Expand reads.
func replacement(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$':
			b.WriteString("$$")
		case s[i] == '&':
			b.WriteString("${0}")
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				b.WriteString("${" + string(c) + "}")
			case c == 'n':
				b.WriteByte('\n')
			case c == 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(c)
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
