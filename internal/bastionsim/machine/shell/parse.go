package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// treeFactor is about how many bytes the tree of one byte of a script takes.
const treeFactor = 40

// maxFrames is how many calls deep the parser may be. It calls itself for what is nested, and a stack that is too long
// would end the whole process.
const maxFrames = 4000

var errNested = errors.New("the script nests too deeply")

// guard gives a parser its input in small pieces, and looks each time how deep the parser is.
type guard struct {
	text string
	base int
}

func (g *guard) Read(p []byte) (int, error) {
	if g.text == "" {
		return 0, io.EOF
	}
	var frame [1]uintptr
	if runtime.Callers(g.base+maxFrames, frame[:]) > 0 {
		return 0, errNested
	}
	n := copy(p[:min(len(p), 512)], g.text)
	g.text = g.text[n:]
	return n, nil
}

func newGuard(text string) *guard {
	g := &guard{text: text}
	var frame [1]uintptr
	for runtime.Callers(g.base, frame[:]) > 0 {
		g.base += 100
	}
	return g
}

// parsing calls a function with a parser. A defect of the parser is not one of this process.
func parsing(fn func(p *syntax.Parser) error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("the script cannot be read: %v", problem)
		}
	}()
	return fn(syntax.NewParser(syntax.Variant(syntax.LangBash)))
}

// parse reads a script. What it takes is counted until release is called.
func (sh *shell) parse(text, name string) (file *syntax.File, release func(), err error) {
	if len(text) > sh.r.limits.Script {
		return nil, nil, fmt.Errorf("%s: the script has %d bytes, more than the %d that it may have", name, len(text), sh.r.limits.Script)
	}
	cost := int64(len(text)) * treeFactor
	if err := errors.Join(sh.step(1+len(text)/16), sh.r.grow(cost)); err != nil {
		return nil, nil, err
	}
	release = func() { _ = sh.r.grow(-cost) } // less is never too much
	if err := parsing(func(p *syntax.Parser) (err error) {
		file, err = p.Parse(newGuard(text), name)
		return err
	}); err != nil {
		release()
		return nil, nil, errors.New(strings.TrimSpace(err.Error()))
	}
	return file, release, nil
}

// parseArithm reads an arithmetic expression, which variables may hold.
func parseArithm(text string) (expr syntax.ArithmExpr, err error) {
	err = parsing(func(p *syntax.Parser) (err error) {
		expr, err = p.Arithmetic(newGuard(text))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: syntax error in expression", text)
	}
	return expr, nil
}

// incomplete says whether a command continues in the next line.
func incomplete(text string) bool {
	line := strings.TrimRight(text, "\n")
	if strings.HasSuffix(line, "\\") || strings.HasSuffix(line, "|") || strings.HasSuffix(line, "&&") {
		return true
	}
	return syntax.IsIncomplete(parsing(func(p *syntax.Parser) error {
		_, err := p.Parse(newGuard(text), "")
		return err
	}))
}
