package shell

import (
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What parsed code takes in memory for each byte of its source, roughly.
const parsedFactor = 48

// guarded feeds the parser and looks at the stack while it does: nesting that the parser follows by recursion ends here
// and not in a stack overflow, which no recover catches. The parser asks for at most 1 KiB at a time.
type guarded struct {
	r    io.Reader
	deep bool
}

const parserFrames = 4000

func (g *guarded) Read(p []byte) (int, error) {
	var pc [1]uintptr
	if runtime.Callers(parserFrames, pc[:]) > 0 {
		g.deep = true
		return 0, ErrNesting
	}
	return g.r.Read(p[:min(len(p), 256)])
}

// parse parses a script. The caller has given the memory back with the function it returns.
func (b *budget) parse(src, name string) (file *syntax.File, release func(), err error) {
	if len(src) > b.limits.Script {
		return nil, nil, b.fail(ErrScript)
	}
	cost := len(src) * parsedFactor
	if err := b.charge(cost); err != nil {
		return nil, nil, err
	}
	release = func() { _ = b.charge(-cost) }
	in := &guarded{r: strings.NewReader(src)}
	file, err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(in, name)
	if err == nil && nesting(file) > b.limits.Nesting {
		in.deep = true
	}
	if in.deep {
		release()
		return nil, nil, b.fail(ErrNesting)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	splitBraces(file)
	return file, release, nil
}

func nesting(file *syntax.File) int {
	depth, deepest := 0, 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return false
		}
		depth++
		deepest = max(deepest, depth)
		return true
	})
	return deepest
}

// splitBraces marks brace expressions once, so that running code never changes it: processes share it.
func splitBraces(file *syntax.File) {
	var words []*syntax.Word
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			words = append(words, n.Args...)
		case *syntax.WordIter:
			words = append(words, n.Items...)
		case *syntax.ArrayElem:
			if n.Value != nil {
				words = append(words, n.Value)
			}
		}
		return true
	})
	for _, w := range words {
		syntax.SplitBraces(w)
	}
}
