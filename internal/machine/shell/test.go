package shell

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// testExpr evaluates [[ ]].
func (p *proc) testExpr(x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.Word:
		s, err := p.literal(x)
		return s != "", err
	case *syntax.ParenTest:
		return p.testExpr(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			ok, err := p.testExpr(x.X)
			return !ok, err
		}
		w, _ := x.X.(*syntax.Word)
		s, err := p.literal(w)
		if err != nil {
			return false, err
		}
		return p.unaryTest(x.Op.String(), s)
	case *syntax.BinaryTest:
		return p.binaryTestExpr(x)
	}
	return false, p.complain("this test does not exist on this machine")
}

func (p *proc) binaryTestExpr(x *syntax.BinaryTest) (bool, error) {
	switch x.Op {
	case syntax.AndTest, syntax.OrTest:
		ok, err := p.testExpr(x.X)
		if err != nil || ok == (x.Op == syntax.OrTest) {
			return ok, err
		}
		return p.testExpr(x.Y)
	}
	xw, _ := x.X.(*syntax.Word)
	yw, _ := x.Y.(*syntax.Word)
	left, err := p.literal(xw)
	if err != nil {
		return false, err
	}
	switch x.Op {
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		pat, err := p.patternOf(yw)
		return err == nil && pat.match(left) == (x.Op != syntax.TsNoMatch), err
	}
	right, err := p.literal(yw)
	if err != nil {
		return false, err
	}
	switch x.Op {
	case syntax.TsReMatch:
		return p.regexTest(left, right)
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		a, err := p.number(left, 0)
		if err != nil {
			return false, err
		}
		b, err := p.number(right, 0)
		return compare(x.Op.String(), a, b), err
	}
	return p.binaryTest(x.Op.String(), left, right)
}

// Regular expressions are RE2: linear in the text, so bounds on both are a bound on the work.
const (
	maxRegexp     = 1024
	maxRegexpText = 64 << 10
)

// Regexp compiles a regular expression that may cost no more than it should.
func Regexp(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxRegexp {
		return nil, ErrText
	}
	return regexp.Compile(expr)
}

func (p *proc) regexTest(text, expr string) (bool, error) {
	rx, err := Regexp(expr)
	if err != nil || len(text) > maxRegexpText {
		p.status = 2
		return false, p.complain("%s: regular expression or text too long, or wrong", clip(expr))
	}
	found := rx.FindStringSubmatch(text)
	if found == nil {
		return false, nil
	}
	list := map[int]string{}
	for i, s := range found {
		list[i] = s
	}
	return true, p.update("BASH_REMATCH", func(v *variable) { v.list, v.set = list, true })
}

func compare(op string, a, b int64) bool {
	switch op {
	case "-eq":
		return a == b
	case "-ne":
		return a != b
	case "-le":
		return a <= b
	case "-ge":
		return a >= b
	case "-lt":
		return a < b
	}
	return a > b
}

func (p *proc) unaryTest(op, s string) (bool, error) {
	view := p.view()
	switch op {
	case "-z":
		return s == "", nil
	case "-n":
		return s != "", nil
	case "-v":
		_, ok := p.get(s)
		return ok, nil
	case "-o":
		r, ok := longOptions[s]
		return ok && *p.optionFlag(r), nil
	case "-t":
		fd, err := strconv.Atoi(s)
		return err == nil && p.fds[fd].tty, nil
	case "-r", "-w", "-x":
		return s != "" && view.Access(p.abs(s), map[string]fs.FileMode{"-r": 4, "-w": 2, "-x": 1}[op]), nil
	case "-L", "-h":
		info, err := view.Lstat(p.abs(s))
		return err == nil && info.Mode()&fs.ModeSymlink != 0, nil
	}
	info, err := view.Stat(p.abs(s))
	if err != nil {
		return false, nil
	}
	mode := info.Mode()
	switch op {
	case "-e", "-a":
		return true, nil
	case "-f":
		return mode.IsRegular(), nil
	case "-d":
		return mode.IsDir(), nil
	case "-s":
		return info.Size() > 0, nil
	case "-c":
		return mode&fs.ModeCharDevice != 0, nil
	case "-b":
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0, nil
	case "-p":
		return mode&fs.ModeNamedPipe != 0, nil
	case "-S":
		return mode&fs.ModeSocket != 0, nil
	case "-k":
		return mode&fs.ModeSticky != 0, nil
	case "-g":
		return mode&fs.ModeSetgid != 0, nil
	case "-u":
		return mode&fs.ModeSetuid != 0, nil
	case "-O":
		return info.UID == p.cred.UID, nil
	case "-G":
		return info.GID == p.cred.GID, nil
	}
	return false, p.complain("test: %s: unary operator expected", clip(op))
}

func (p *proc) binaryTest(op, a, b string) (bool, error) {
	switch op {
	case "=", "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "<":
		return a < b, nil
	case ">":
		return a > b, nil
	case "-eq", "-ne", "-le", "-ge", "-lt", "-gt":
		x, errX := strconv.ParseInt(strings.TrimSpace(a), 10, 64)
		y, errY := strconv.ParseInt(strings.TrimSpace(b), 10, 64)
		if errX != nil || errY != nil {
			p.status = 2
			return false, p.complain("test: integer expression expected")
		}
		return compare(op, x, y), nil
	case "-nt", "-ot", "-ef":
		x, errX := p.view().Stat(p.abs(a))
		y, errY := p.view().Stat(p.abs(b))
		switch {
		case errX != nil || errY != nil:
			return op == "-nt" && errX == nil || op == "-ot" && errY == nil, nil
		case op == "-nt":
			return x.ModTime().After(y.ModTime()), nil
		case op == "-ot":
			return x.ModTime().Before(y.ModTime()), nil
		}
		return x.Same(y), nil
	}
	p.status = 2
	return false, p.complain("test: %s: binary operator expected", clip(op))
}

// builtinTest is test and [.
func builtinTest(p *proc, args []string) (int, error) {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			return p.failf(2, "[: missing `]'")
		}
		words = words[:len(words)-1]
	}
	p.status = 0
	t := &testParser{p: p, words: words}
	ok, err := t.or()
	if err == nil && t.at < len(words) {
		return p.failf(2, "%s: too many arguments", args[0])
	}
	if err != nil {
		p.errf("%s: %v", p.name, err)
		return 2, p.b().err()
	}
	return b2i(!ok), nil
}

type testParser struct {
	p     *proc
	words []string
	at    int
	depth int
}

func (t *testParser) left() int { return len(t.words) - t.at }

func (t *testParser) or() (bool, error) {
	ok, err := t.and()
	for err == nil && t.left() > 1 && t.words[t.at] == "-o" {
		t.at++
		var right bool
		right, err = t.and()
		ok = ok || right
	}
	return ok, err
}

func (t *testParser) and() (bool, error) {
	ok, err := t.primary()
	for err == nil && t.left() > 1 && t.words[t.at] == "-a" {
		t.at++
		var right bool
		right, err = t.primary()
		ok = ok && right
	}
	return ok, err
}

var binaryOps = map[string]bool{"=": true, "==": true, "!=": true, "<": true, ">": true, "-eq": true, "-ne": true, "-le": true,
	"-ge": true, "-lt": true, "-gt": true, "-nt": true, "-ot": true, "-ef": true}

func (t *testParser) primary() (bool, error) {
	if t.left() == 0 {
		return false, nil
	}
	if t.depth++; t.depth > 200 {
		return false, t.p.complain("test: nested too deeply")
	}
	defer func() { t.depth-- }()
	w := t.words[t.at]
	switch {
	case t.left() > 2 && binaryOps[t.words[t.at+1]]:
		op, right := t.words[t.at+1], t.words[t.at+2]
		t.at += 3
		return t.p.binaryTest(op, w, right)
	case w == "!" && t.left() > 1:
		t.at++
		ok, err := t.primary()
		return !ok, err
	case w == "(" && t.left() > 2:
		t.at++
		ok, err := t.or()
		if err == nil && (t.left() == 0 || t.words[t.at] != ")") {
			return false, t.p.complain("test: `)' expected")
		}
		t.at++
		return ok, err
	case len(w) == 2 && w[0] == '-' && t.left() > 1 && strings.Contains("zneafdscbpSkguOGrwxLhtov", w[1:]):
		s := t.words[t.at+1]
		t.at += 2
		return t.p.unaryTest(w, s)
	}
	t.at++
	return w != "", nil
}
