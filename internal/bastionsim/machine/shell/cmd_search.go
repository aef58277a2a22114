package shell

import (
	"cmp"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// posixPart matches the parts of a POSIX expression: a character after a backslash, a set, or any other character.
var posixPart = regexp.MustCompile(`(?s)\\.|\[\^?\]?(?:\[:[^]]*:\]|[^]])*\]|.`)

// goRegexp converts a basic or extended POSIX regular expression to one of Go.
func goRegexp(expr string, extended bool) string {
	const special = "(){}|+?"   // with a backslash in basic expressions, without one in extended ones
	if len(expr) > maxPattern { // compile refuses it
		return expr
	}
	before := "" // the previous part; after some of them, a star is literal
	return posixPart.ReplaceAllStringFunc(expr, func(part string) string {
		text := part
		switch {
		case part == `\<` || part == `\>`:
			text = `\b`
		case part[0] == '\\' && len(part) > 1:
			if !extended && strings.Contains(special, part[1:]) {
				text = part[1:]
			}
		case part[0] == '[' && len(part) > 1:
			text = strings.ReplaceAll(part, `\`, `\\`)
		case part == "[" || part == `\`:
			text = `\` + part
		case !extended && strings.Contains(special, part):
			text = `\` + part
		case !extended && part == "*" && slices.Contains([]string{"", "^", `\(`, `\|`}, before):
			text = `\*`
		}
		before = part
		return text
	})
}

type grepper struct {
	p       *Process
	f       flags
	re      *matcher
	matched bool
	names   bool
}

func grepProgram(p *Process, f flags) int {
	patterns, args := f.values['e'], f.args
	if len(patterns) == 0 {
		if len(args) == 0 {
			return p.Failf(2, "usage: grep [OPTION]... PATTERNS [FILE]...")
		}
		patterns, args = strings.Split(args[0], "\n"), args[1:]
	}
	g := &grepper{p: p, f: f, names: (len(args) > 1 || f.has('r')) && !f.has('h')}
	var err error
	if g.re, err = g.compile(patterns); err != nil {
		return p.Failf(2, "%v", err)
	}
	status := 0
	if f.has('r') {
		var files []string
		roots := append(args, ".")[:max(1, len(args))]
		status = p.walk(roots, "cannot read", deepest, func(name string, info fs.FileInfo) error {
			if info.Mode().IsRegular() {
				files = append(files, name)
			}
			return nil
		})
		args = files
	}
	if len(args) > 0 || !f.has('r') {
		status = max(status, p.inputs(args, g.file))
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
		if g.f.has('F') {
			pat = regexp.QuoteMeta(pat)
		} else {
			pat = goRegexp(pat, g.f.has('E'))
		}
		alternatives = append(alternatives, "(?:"+pat+")")
	}
	expr := strings.Join(alternatives, "|")
	if g.f.has('w') {
		expr = `\b(?:` + expr + `)\b`
	}
	if g.f.has('i') {
		expr = "(?i)" + expr
	}
	return compile(expr)
}

func (g *grepper) file(name string, in io.Reader) error {
	name = cmp.Or(strings.TrimPrefix(name, "-"), "(standard input)")
	count, n := 0, 0
	show := func(line string) error {
		if g.f.has('n') && !g.f.has('c') {
			line = strconv.Itoa(n) + ":" + line
		}
		if g.names {
			line = name + ":" + line
		}
		return g.p.write(line + "\n")
	}
	err := g.p.lines(in, func(line string) (bool, error) {
		n++
		found := g.re.find(g.p.shell, line)
		if !g.p.ok() {
			return false, g.p.err
		}
		if (found != nil) == g.f.has('v') {
			return true, nil
		}
		g.matched = true
		count++
		switch {
		case g.f.has('q'), g.f.has('l'):
			return false, nil
		case g.f.has('c'):
			return true, nil
		case g.f.has('o'):
			var err error
			g.re.replace(g.p.shell, line, true, func(out []byte, text string, match []int) []byte {
				if match[0] < match[1] && err == nil {
					err = show(text[match[0]:match[1]])
				}
				return out
			})
			return true, err
		}
		return true, show(line)
	})
	switch {
	case err != nil || g.f.has('q'):
		return err
	case g.f.has('c'):
		return show(strconv.Itoa(count))
	case g.f.has('l') && count > 0:
		return g.p.write(name + "\n")
	}
	return nil
}

var findTypes = map[string]byte{"f": '-', "d": 'd', "l": 'l', "c": 'c', "b": 'b'}

// findProgram prints the names that pass all tests: -name, -iname and -type, which "!" negates.
func findProgram(p *Process, f flags) int {
	args, levels := f.args, deepest
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var tests []func(name string, info fs.FileInfo) bool
	for want := true; len(args) > 0; want = true {
		for len(args) > 1 && args[0] == "!" {
			want, args = !want, args[1:]
		}
		name := args[0]
		if args = args[1:]; name == "-print" {
			continue
		}
		if len(args) == 0 {
			return p.Failf(1, "missing argument to `%s'", name)
		}
		arg := args[0]
		args = args[1:]
		switch name {
		case "-name", "-iname":
			tests = append(tests, func(file string, _ fs.FileInfo) bool {
				return p.match(arg, path.Base(file), name == "-iname") == want
			})
		case "-type":
			tests = append(tests, func(_ string, info fs.FileInfo) bool {
				return (vfs.ListMode(info.Mode())[0] == findTypes[arg]) == want
			})
		case "-maxdepth":
			var err error
			if levels, err = strconv.Atoi(arg); err != nil {
				return p.Fail(err)
			}
		default:
			return p.Failf(1, "unknown predicate `%s'", name)
		}
	}
	return p.walk(roots, "", levels, func(name string, info fs.FileInfo) error {
		for _, passes := range tests {
			if !passes(name, info) {
				return nil
			}
		}
		p.Printf("%s\n", name)
		return nil
	})
}
