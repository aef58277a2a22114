package shell

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// goRegexp writes a basic or extended regular expression of POSIX as one of Go.
func goRegexp(expr string, extended bool) string {
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case c == '\\' && i+1 < len(expr):
			i++
			switch next := expr[i]; {
			case next == '<' || next == '>':
				b.WriteString(`\b`)
			case !extended && strings.IndexByte("(){}|+?", next) >= 0:
				b.WriteByte(next)
			case next == '/' || next == '-' || next == '"' || next == '\'' || next == ' ' || next == '#' || next == ',' || next == ':' || next == '&' || next == '@' || next == '=' || next == '%' || next == '~' || next == '!':
				b.WriteByte(next)
			default:
				b.WriteString(`\` + string(next))
			}
		case c == '[':
			end := bracketEnd(expr[i:])
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := expr[i : i+end]
			negated := ""
			body := class[1 : len(class)-1]
			if strings.HasPrefix(body, "^") {
				negated, body = "^", body[1:]
			}
			b.WriteString("[" + negated + strings.NewReplacer(`\`, `\\`, `[:`, `[:`, `[`, `\[`, `]`, `\]`).Replace(protectClasses(body)) + "]")
			s := b.String()
			b.Reset()
			b.WriteString(restoreClasses(s))
			i += end - 1
		case !extended && strings.IndexByte("(){}|+?", c) >= 0:
			b.WriteString(`\` + string(c))
		case !extended && c == '*' && (i == 0 || strings.HasSuffix(expr[:i], `\(`) || strings.HasSuffix(expr[:i], `\|`) || expr[:i] == "^"):
			b.WriteString(`\*`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Classes like [:alpha:] keep their brackets while the others are quoted.
func protectClasses(s string) string {
	return strings.NewReplacer("[:", "\x01", ":]", "\x02").Replace(s)
}

func restoreClasses(s string) string {
	return strings.NewReplacer("\x01", "[:", "\x02", ":]").Replace(s)
}

// bracketEnd is the length of the bracket expression that a text begins with, or -1.
func bracketEnd(text string) int {
	i := 1
	if i < len(text) && text[i] == '^' {
		i++
	}
	for start := i; i < len(text); i++ {
		switch {
		case text[i] == ']' && i > start:
			return i + 1
		case strings.HasPrefix(text[i:], "[:"):
			if end := strings.Index(text[i:], ":]"); end > 0 {
				i += end + 1
			}
		}
	}
	return -1
}

type grepper struct {
	p       *Process
	f       flags
	re      *matcher
	matched bool
	names   bool
	after   int
	before  int
}

var grepLong = map[string]byte{
	"ignore-case": 'i', "invert-match": 'v', "line-number": 'n', "count": 'c', "quiet": 'q', "silent": 'q', "extended-regexp": 'E', "fixed-strings": 'F',
	"recursive": 'r', "word-regexp": 'w', "line-regexp": 'x', "only-matching": 'o', "files-with-matches": 'l', "no-messages": 's', "regexp": 'e', "file": 'f',
	"max-count": 'm', "no-filename": 'h', "with-filename": 'H', "perl-regexp": 'P', "color": 'G', "text": 'a',
}

func grepProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "ivncqEFrRwxolLshHe:f:m:PGaA:B:C:z", grepLong, false)
	if err != nil {
		return p.Failf(2, "%v", err)
	}
	patterns, args := f.values['e'], f.args
	if name := f.value('f', ""); name != "" {
		text, err := p.readFile(name)
		if err != nil {
			return p.Failf(2, "%v", err)
		}
		patterns = append(patterns, splitLines(text)...)
	} else if len(patterns) == 0 {
		if len(args) == 0 {
			return p.Failf(2, "usage: grep [OPTION]... PATTERNS [FILE]...")
		}
		patterns, args = strings.Split(args[0], "\n"), args[1:]
	}
	g := &grepper{p: p, f: f}
	if g.re, err = g.compile(patterns); err != nil {
		return p.Failf(2, "%v", err)
	}
	around := f.value('C', "0")
	g.after, _ = strconv.Atoi(f.value('A', around))
	g.before, _ = strconv.Atoi(f.value('B', around))
	g.before = min(g.before, 1000)
	recursive := f.has('r') || f.has('R')
	g.names = (len(args) > 1 || recursive || f.has('H')) && !f.has('h')
	if recursive && len(args) == 0 {
		args = []string{"."}
	}
	status := 0
	if recursive {
		status = g.tree(args)
	} else {
		status = p.inputs(args, g.file)
	}
	switch {
	case g.matched && (f.has('q') || status == 0):
		return 0
	case status != 0:
		return 2
	}
	return 1
}

func (g *grepper) compile(patterns []string) (*matcher, error) {
	var alternatives []string
	for _, pat := range patterns {
		switch {
		case g.f.has('F'):
			pat = regexp.QuoteMeta(pat)
		case g.f.has('P'):
		default:
			pat = goRegexp(pat, g.f.has('E'))
		}
		alternatives = append(alternatives, "(?:"+pat+")")
	}
	expr := strings.Join(alternatives, "|")
	if g.f.has('w') {
		expr = `\b(?:` + expr + `)\b`
	}
	if g.f.has('x') {
		expr = "^(?:" + expr + ")$"
	}
	if g.f.has('i') {
		expr = "(?i)" + expr
	}
	return compile(expr)
}

func (g *grepper) tree(roots []string) int {
	status := 0
	for _, root := range roots {
		if err := g.p.walk(root, true, func(name string, info fs.FileInfo) error {
			if !info.Mode().IsRegular() {
				return nil
			}
			in, done, err := g.p.open(name)
			if err != nil {
				return err
			}
			defer done()
			return g.file(name, in)
		}); err != nil {
			status = 2
			if !g.f.has('s') {
				_ = g.p.Fail(err) // the status is 2
			}
		}
	}
	return status
}

func (g *grepper) file(name string, in io.Reader) error {
	prefix := ""
	if g.names {
		prefix = cmp.Or(strings.TrimPrefix(name, "-"), "(standard input)") + ":"
	}
	most, err := strconv.Atoi(g.f.value('m', "1000000000"))
	if err != nil {
		return err
	}
	count, n, trailing := 0, 0, 0
	var before []string
	err = g.p.lines(in, func(line string) (bool, error) {
		n++
		found := g.re.find(g.p.sh, line)
		if !g.p.sh.ok() {
			return false, g.p.sh.err
		}
		if (found != nil) == g.f.has('v') {
			if trailing > 0 {
				trailing--
				return true, g.print(prefix, n, line)
			}
			if before = append(before, line); len(before) > g.before {
				before = before[1:]
			}
			return true, nil
		}
		g.matched = true
		count++
		switch {
		case g.f.has('q'), g.f.has('l'):
			return false, nil
		case g.f.has('c'), g.f.has('L'):
			return count < most, nil
		case g.f.has('o') && !g.f.has('v'):
			return count < most, g.parts(prefix, n, line)
		}
		for i, l := range before {
			if err := g.print(prefix, n-len(before)+i, l); err != nil {
				return false, err
			}
		}
		before, trailing = nil, g.after
		return count < most, g.print(prefix, n, line)
	})
	switch {
	case err != nil:
		return err
	case g.f.has('c') && !g.f.has('q'):
		g.p.Printf("%s%d\n", prefix, count)
	case g.f.has('l') && count > 0, g.f.has('L') && count == 0:
		g.p.Printf("%s\n", cmp.Or(strings.TrimPrefix(name, "-"), "(standard input)"))
	}
	return nil
}

func (g *grepper) print(prefix string, n int, line string) error {
	if g.f.has('n') {
		prefix += strconv.Itoa(n) + ":"
	}
	_, err := io.WriteString(g.p.Stdout, prefix+line+"\n")
	return err
}

func (g *grepper) parts(prefix string, n int, line string) error {
	for line != "" {
		found := g.re.find(g.p.sh, line)
		if found == nil {
			return g.p.sh.err
		}
		if found[1] > found[0] {
			if err := g.print(prefix, n, line[found[0]:found[1]]); err != nil {
				return err
			}
		}
		line = line[max(found[1], 1):]
	}
	return nil
}
