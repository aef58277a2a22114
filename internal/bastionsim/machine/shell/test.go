package shell

import (
	"io/fs"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// testExpr is [[ ... ]].
func (sh *shell) testExpr(x syntax.TestExpr) (bool, error) {
	leave, err := sh.deeper()
	defer leave()
	if err == nil {
		err = sh.step(1)
	}
	if err != nil {
		return false, err
	}
	switch x := x.(type) {
	case *syntax.Word:
		text, err := sh.literal(x)
		return text != "", err
	case *syntax.ParenTest:
		return sh.testExpr(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			ok, err := sh.testExpr(x.X)
			return !ok, err
		}
		w, ok := x.X.(*syntax.Word)
		if !ok {
			return false, failf("conditional expression: a word is expected")
		}
		text, err := sh.literal(w)
		if err != nil {
			return false, err
		}
		return sh.testUnary(x.Op.String(), text)
	case *syntax.BinaryTest:
		return sh.testBinary(x)
	}
	return false, failf("conditional expression: syntax error")
}

func (sh *shell) testBinary(x *syntax.BinaryTest) (bool, error) {
	if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
		ok, err := sh.testExpr(x.X)
		if err != nil || ok == (x.Op == syntax.OrTest) {
			return ok, err
		}
		return sh.testExpr(x.Y)
	}
	left, ok1 := x.X.(*syntax.Word)
	right, ok2 := x.Y.(*syntax.Word)
	if !ok1 || !ok2 {
		return false, failf("conditional expression: a word is expected")
	}
	a, err := sh.literal(left)
	if err != nil {
		return false, err
	}
	switch x.Op {
	case syntax.TsReMatch:
		return sh.testRegexp(a, right)
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		pat, err := sh.pattern(right)
		if err != nil {
			return false, err
		}
		ok, err := sh.match(pat, a, sh.nocasematch)
		return ok == (x.Op != syntax.TsNoMatch), err
	}
	b, err := sh.literal(right)
	if err != nil {
		return false, err
	}
	if op := x.Op.String(); strings.HasPrefix(op, "-") && op != "-nt" && op != "-ot" && op != "-ef" {
		return sh.testNumbers(op, a, b, sh.arithmText)
	}
	return sh.testTwo(x.Op.String(), a, b)
}

func (sh *shell) testRegexp(text string, w *syntax.Word) (bool, error) {
	e := &expander{sh: sh}
	if err := sh.parts(e, w.Parts, false, true); err != nil {
		return false, err
	}
	var b strings.Builder
	for _, p := range e.cur {
		if p.quoted {
			b.WriteString(quoteRegexp(p.text))
		} else {
			b.WriteString(p.text)
		}
	}
	expr := b.String()
	if sh.nocasematch {
		expr = "(?i)" + expr
	}
	re, err := compile(expr)
	if err != nil {
		return false, &failure{msg: "[[: invalid regular expression `" + expr + "': " + err.Error(), code: 2}
	}
	found, err := re.find(sh, text)
	if err != nil {
		return false, failf("%v", err)
	}
	var groups []string
	for i := 0; i+1 < len(found); i += 2 {
		group := ""
		if found[i] >= 0 {
			group = text[found[i]:found[i+1]]
		}
		groups = append(groups, group)
	}
	return found != nil, sh.assignList("BASH_REMATCH", groups)
}

func quoteRegexp(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// testUnary are the operators with one operand, of test as of [[.
func (sh *shell) testUnary(op, arg string) (bool, error) {
	switch op {
	case "-z":
		return arg == "", nil
	case "-n":
		return arg != "", nil
	case "-v":
		name, sub, element := strings.Cut(arg, "[")
		if element && strings.HasSuffix(sub, "]") {
			v, err := sh.elementByText(name, strings.TrimSuffix(sub, "]"))
			return v.set, err
		}
		if n, err := strconv.Atoi(arg); err == nil {
			return n <= len(sh.params), nil
		}
		v := sh.get(arg)
		_, set := v.first()
		return set, nil
	case "-R":
		return sh.raw(arg).kind == nameref, nil
	case "-o":
		p := sh.setOptions()[arg]
		return p != nil && *p, nil
	case "-t":
		fd, err := strconv.Atoi(arg)
		return err == nil && sh.fds[fd] != nil && sh.fds[fd].tty, nil
	case "-r", "-w", "-x":
		return sh.fs.Access(sh.abs(arg), map[string]fs.FileMode{"-r": 4, "-w": 2, "-x": 1}[op]) == nil, nil
	case "-L", "-h":
		info, err := sh.fs.Lstat(sh.abs(arg))
		return err == nil && info.Mode()&fs.ModeSymlink != 0, nil
	}
	check := fileTests[op]
	if check == nil {
		return false, failf("%s: unary operator expected", op)
	}
	if arg == "/dev/stdin" || arg == "/dev/stdout" || arg == "/dev/stderr" {
		return op == "-e" || op == "-c", nil
	}
	info, err := sh.fs.Stat(sh.abs(arg))
	return err == nil && check(sh, info), nil
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
	"-p": hasMode(fs.ModeNamedPipe), "-S": hasMode(fs.ModeSocket), "-k": hasMode(fs.ModeSticky), "-u": hasMode(fs.ModeSetuid), "-g": hasMode(fs.ModeSetgid),
	"-O": func(sh *shell, i fs.FileInfo) bool { return i.Sys().(*vfs.Stat).UID == sh.user.UID },
	"-G": func(sh *shell, i fs.FileInfo) bool { return i.Sys().(*vfs.Stat).GID == sh.user.GID },
	"-N": func(_ *shell, i fs.FileInfo) bool { return i.ModTime().After(i.Sys().(*vfs.Stat).Atime) },
}

func (sh *shell) testNumbers(op, a, b string, number func(string) (int64, error)) (bool, error) {
	x, err := number(a)
	if err != nil {
		return false, err
	}
	y, err := number(b)
	if err != nil {
		return false, err
	}
	switch op {
	case "-eq":
		return x == y, nil
	case "-ne":
		return x != y, nil
	case "-lt":
		return x < y, nil
	case "-le":
		return x <= y, nil
	case "-gt":
		return x > y, nil
	case "-ge":
		return x >= y, nil
	}
	return false, failf("%s: binary operator expected", op)
}

func (sh *shell) testTwo(op, a, b string) (bool, error) {
	switch op {
	case "=", "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "<":
		return a < b, nil
	case ">":
		return a > b, nil
	case "-nt", "-ot", "-ef":
		x, errX := sh.fs.Stat(sh.abs(a))
		y, errY := sh.fs.Stat(sh.abs(b))
		switch {
		case op == "-nt":
			return errX == nil && (errY != nil || x.ModTime().After(y.ModTime())), nil
		case op == "-ot":
			return errY == nil && (errX != nil || x.ModTime().Before(y.ModTime())), nil
		}
		return errX == nil && errY == nil && x.Sys().(*vfs.Stat).Ino == y.Sys().(*vfs.Stat).Ino, nil
	}
	return sh.testNumbers(op, a, b, func(s string) (int64, error) {
		n, ok := parseNumber(strings.TrimSpace(s))
		if !ok || strings.ContainsAny(s, "#xX") {
			return 0, failf("%s: integer expression expected", s)
		}
		return n, nil
	})
}

var binaryTests = map[string]bool{"=": true, "==": true, "!=": true, "<": true, ">": true, "-nt": true, "-ot": true, "-ef": true, "-eq": true, "-ne": true, "-lt": true, "-le": true, "-gt": true, "-ge": true}

func testCommand(b *builtin) int {
	args := b.args
	if b.name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return b.failf(2, "missing `]'")
		}
		args = args[:len(args)-1]
	}
	p := &classic{sh: b.shell, args: args}
	ok, err := p.or()
	if err == nil && len(p.args) > 0 {
		err = failf("too many arguments")
	}
	if err != nil {
		return b.failf(2, "%v", err)
	}
	return boolStatus(ok)
}

// classic reads what test was called with.
type classic struct {
	sh   *shell
	args []string
}

func (p *classic) or() (bool, error) {
	ok, err := p.and()
	for err == nil && len(p.args) > 1 && p.args[0] == "-o" {
		p.args = p.args[1:]
		var other bool
		other, err = p.and()
		ok = ok || other
	}
	return ok, err
}

func (p *classic) and() (bool, error) {
	ok, err := p.primary()
	for err == nil && len(p.args) > 1 && p.args[0] == "-a" {
		p.args = p.args[1:]
		var other bool
		other, err = p.primary()
		ok = ok && other
	}
	return ok, err
}

func (p *classic) primary() (bool, error) {
	leave, err := p.sh.deeper()
	defer leave()
	if err != nil {
		return false, err
	}
	a := p.args
	switch {
	case len(a) == 0:
		return false, nil
	case len(a) >= 3 && binaryTests[a[1]]:
		p.args = a[3:]
		return p.sh.testTwo(a[1], a[0], a[2])
	case len(a) == 1:
		p.args = nil
		return a[0] != "", nil
	case a[0] == "!":
		p.args = a[1:]
		ok, err := p.primary()
		return !ok, err
	case a[0] == "(":
		p.args = a[1:]
		ok, err := p.or()
		if err == nil && (len(p.args) == 0 || p.args[0] != ")") {
			return false, failf("`)' expected")
		}
		if err == nil {
			p.args = p.args[1:]
		}
		return ok, err
	case len(a[0]) == 2 && a[0][0] == '-':
		p.args = a[2:]
		return p.sh.testUnary(a[0], a[1])
	}
	p.args = a[1:]
	return a[0] != "", nil
}
