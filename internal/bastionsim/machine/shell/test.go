package shell

import (
	"cmp"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// testExpr evaluates [[ ... ]].
func (sh *shell) testExpr(x syntax.TestExpr) bool {
	defer sh.nest()()
	if sh.step(1) != nil || !sh.ok() {
		return false
	}
	switch x := x.(type) {
	case *syntax.Word:
		return sh.literal(x) != ""
	case *syntax.ParenTest:
		return sh.testExpr(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !sh.testExpr(x.X)
		}
		if w, ok := x.X.(*syntax.Word); ok {
			return sh.testUnary(x.Op.String(), sh.literal(w))
		}
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			return sh.testExpr(x.X) && sh.testExpr(x.Y)
		case syntax.OrTest:
			return sh.testExpr(x.X) || sh.testExpr(x.Y)
		}
		left, ok1 := x.X.(*syntax.Word)
		right, ok2 := x.Y.(*syntax.Word)
		if ok1 && ok2 {
			return sh.testBinary(x.Op, sh.literal(left), right)
		}
	}
	sh.failf("conditional expression: syntax error")
	return false
}

func (sh *shell) testBinary(op syntax.BinTestOperator, a string, right *syntax.Word) bool {
	switch op {
	case syntax.TsReMatch:
		return sh.testRegexp(a, right)
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		pat := sh.pattern(right)
		return sh.ok() && sh.match(pat, a, false) == (op != syntax.TsNoMatch)
	}
	return sh.testTwo(op.String(), a, sh.literal(right), sh.arithmText)
}

func (sh *shell) testRegexp(text string, w *syntax.Word) bool {
	expr := ""
	for _, p := range sh.expanded(w) {
		if p.quoted {
			expr += regexp.QuoteMeta(p.text)
		} else {
			expr += p.text
		}
	}
	re, err := compile(expr)
	if err != nil {
		sh.failWith(2, "[[: invalid regular expression `%s': %v", expr, err)
		return false
	}
	found := re.find(sh, text)
	var groups []string
	for i := 0; i+1 < len(found); i += 2 {
		groups = append(groups, "")
		if found[i] >= 0 {
			groups[i/2] = text[found[i]:found[i+1]]
		}
	}
	if sh.ok() {
		sh.assign("BASH_REMATCH", listOf(groups))
	}
	return found != nil
}

// testUnary evaluates an operator with one operand, for test and for [[.
func (sh *shell) testUnary(op, arg string) bool {
	if !sh.ok() {
		return false
	}
	switch op {
	case "-z":
		return arg == ""
	case "-n":
		return arg != ""
	case "-v":
		name, sub, _ := strings.Cut(strings.TrimSuffix(arg, "]"), "[")
		return sh.lookupText(name, sub).set
	case "-R":
		return sh.raw(arg).kind == nameref
	case "-o":
		p := sh.setOptions()[arg]
		return p != nil && *p
	case "-t":
		fd, err := strconv.Atoi(arg)
		return err == nil && sh.fds[fd] != nil && sh.fds[fd].tty
	case "-r", "-w", "-x":
		return sh.fs.Access(sh.abs(arg), map[string]fs.FileMode{"-r": 4, "-w": 2, "-x": 1}[op]) == nil
	case "-L", "-h":
		info, err := sh.fs.Lstat(sh.abs(arg))
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	check := fileTests[op]
	if check == nil {
		sh.failWith(2, "%s: unary operator expected", op)
		return false
	}
	if strings.HasPrefix(arg, "/dev/fd/") || arg == "/dev/stdin" || arg == "/dev/stdout" || arg == "/dev/stderr" {
		return op == "-e" || op == "-c"
	}
	info, err := sh.fs.Stat(sh.abs(arg))
	return err == nil && check(sh, info)
}

func hasMode(m fs.FileMode) func(*shell, fs.FileInfo) bool {
	return func(_ *shell, i fs.FileInfo) bool { return i.Mode()&m != 0 }
}

var fileTests = map[string]func(*shell, fs.FileInfo) bool{
	"-e": func(*shell, fs.FileInfo) bool { return true },
	"-a": func(*shell, fs.FileInfo) bool { return true },
	"-f": func(_ *shell, i fs.FileInfo) bool { return i.Mode().IsRegular() },
	"-d": func(_ *shell, i fs.FileInfo) bool { return i.IsDir() },
	"-s": func(_ *shell, i fs.FileInfo) bool { return i.Size() > 0 },
	"-c": hasMode(fs.ModeCharDevice),
	"-b": func(_ *shell, i fs.FileInfo) bool { return i.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice },
	"-p": hasMode(fs.ModeNamedPipe), "-S": hasMode(fs.ModeSocket), "-k": hasMode(fs.ModeSticky),
	"-u": hasMode(fs.ModeSetuid), "-g": hasMode(fs.ModeSetgid),
	"-O": func(sh *shell, i fs.FileInfo) bool { return i.Sys().(*vfs.Stat).UID == sh.user.UID },
	"-G": func(sh *shell, i fs.FileInfo) bool { return i.Sys().(*vfs.Stat).GID == sh.user.GID },
	"-N": func(_ *shell, i fs.FileInfo) bool { return i.ModTime().After(i.Sys().(*vfs.Stat).Atime) },
}

// testTwo evaluates an operator with two operands. number parses an operand that is a number.
func (sh *shell) testTwo(op, a, b string, number func(string) int64) bool {
	if test := textTests[op]; test != nil {
		return test(sh, a, b)
	}
	compare := numberTests[op]
	if compare == nil {
		sh.failWith(2, "%s: binary operator expected", op)
		return false
	}
	x := number(a)
	y := number(b)
	return sh.ok() && compare(cmp.Compare(x, y))
}

var textTests = map[string]func(sh *shell, a, b string) bool{
	"=":   func(_ *shell, a, b string) bool { return a == b },
	"==":  func(_ *shell, a, b string) bool { return a == b },
	"!=":  func(_ *shell, a, b string) bool { return a != b },
	"<":   func(_ *shell, a, b string) bool { return a < b },
	">":   func(_ *shell, a, b string) bool { return a > b },
	"-nt": (*shell).newer,
	"-ot": func(sh *shell, a, b string) bool { return sh.newer(b, a) },
	"-ef": func(sh *shell, a, b string) bool {
		x, errX := sh.fs.Stat(sh.abs(a))
		y, errY := sh.fs.Stat(sh.abs(b))
		return errX == nil && errY == nil && x.Sys().(*vfs.Stat).Ino == y.Sys().(*vfs.Stat).Ino
	},
}

// newer reports whether the first file exists, and has changed after the second one or the second one is missing.
func (sh *shell) newer(a, b string) bool {
	x, errX := sh.fs.Stat(sh.abs(a))
	y, errY := sh.fs.Stat(sh.abs(b))
	return errX == nil && (errY != nil || x.ModTime().After(y.ModTime()))
}

var numberTests = map[string]func(int) bool{
	"-eq": func(c int) bool { return c == 0 }, "-ne": func(c int) bool { return c != 0 },
	"-lt": func(c int) bool { return c < 0 }, "-le": func(c int) bool { return c <= 0 },
	"-gt": func(c int) bool { return c > 0 }, "-ge": func(c int) bool { return c >= 0 },
}

func testCommand(b *builtin) int {
	args := b.args
	if b.name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return b.failf(2, "missing `]'")
		}
		args = args[:len(args)-1]
	}
	c := &testParser{sh: b.shell, args: args}
	ok := c.expression()
	if len(c.args) > 0 {
		b.failWith(2, "too many arguments")
	}
	return boolStatus(ok)
}

// testParser parses the arguments of test.
type testParser struct {
	sh   *shell
	args []string
}

func (p *testParser) expression() bool {
	return p.either("-o", func() bool { return p.either("-a", p.primary) })
}

// either evaluates operands with op, which is -a or -o, between them.
func (p *testParser) either(op string, operand func() bool) bool {
	ok := operand()
	for p.sh.ok() && len(p.args) > 1 && p.args[0] == op {
		p.args = p.args[1:]
		if other := operand(); op == "-o" {
			ok = ok || other
		} else {
			ok = ok && other
		}
	}
	return ok
}

func (p *testParser) primary() bool {
	defer p.sh.nest()()
	a := p.args
	switch {
	case len(a) == 0 || !p.sh.ok():
		return false
	case len(a) >= 3 && (textTests[a[1]] != nil || numberTests[a[1]] != nil):
		p.args = a[3:]
		return p.sh.testTwo(a[1], a[0], a[2], func(text string) int64 {
			n, ok := parseNumber(strings.TrimSpace(text))
			if !ok || strings.ContainsAny(text, "#xX") {
				p.sh.failWith(2, "%s: integer expression expected", text)
			}
			return n
		})
	case len(a) == 1:
		p.args = nil
		return a[0] != ""
	case a[0] == "!":
		p.args = a[1:]
		return !p.primary()
	case a[0] == "(":
		p.args = a[1:]
		ok := p.expression()
		if len(p.args) == 0 || p.args[0] != ")" {
			p.sh.failWith(2, "`)' expected")
			return false
		}
		p.args = p.args[1:]
		return ok
	case len(a[0]) == 2 && a[0][0] == '-':
		p.args = a[2:]
		return p.sh.testUnary(a[0], a[1])
	}
	p.args = a[1:]
	return a[0] != ""
}
