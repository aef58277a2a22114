package shell

import (
	"math"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// arithm evaluates an expression in 64 bits, as bash does.
func (sh *shell) arithm(x syntax.ArithmExpr) int64 {
	defer sh.nest()()
	if sh.step(1) != nil || !sh.ok() {
		return 0
	}
	switch x := x.(type) {
	case nil:
		return 0
	case *syntax.Word:
		return sh.arithmWord(x)
	case *syntax.ParenArithm:
		return sh.arithm(x.X)
	case *syntax.UnaryArithm:
		return sh.unary(x)
	case *syntax.BinaryArithm:
		return sh.binaryArithm(x)
	}
	sh.failf("%T: syntax error in expression", x)
	return 0
}

func (sh *shell) arithmWord(w *syntax.Word) int64 {
	name, index, ok := arithmName(w)
	if !ok {
		return sh.arithmText(sh.literal(w))
	}
	v := sh.lookup(name, index)
	if !v.set && sh.nounset {
		sh.fatalf("%s: unbound variable", name)
	}
	if !sh.ok() {
		return 0
	}
	return sh.arithmText(strings.Join(v.list, " "))
}

// arithmName returns the name and index of a variable or an element that is written without a dollar sign.
func arithmName(w *syntax.Word) (string, syntax.ArithmExpr, bool) {
	if len(w.Parts) == 1 {
		switch part := w.Parts[0].(type) {
		case *syntax.Lit:
			return part.Value, nil, syntax.ValidName(part.Value)
		case *syntax.ParamExp:
			if part.Short && part.Param != nil && (!part.Dollar.IsValid() || part.Index != nil) {
				return part.Param.Value, part.Index, true
			}
		}
	}
	return "", nil, false
}

// arithmText evaluates a text: a number, or an expression that a variable holds.
func (sh *shell) arithmText(text string) int64 {
	text = strings.TrimSpace(text)
	if text == "" || !sh.ok() {
		return 0
	}
	if n, ok := parseNumber(text); ok {
		return n
	}
	defer sh.nest()()
	if sh.step(1+len(text)/16) != nil || !sh.ok() {
		return 0
	}
	if len(text) > 4096 {
		sh.failf("the expression is too long")
		return 0
	}
	x, err := parseArithm(text)
	if err != nil {
		sh.failf("%v", err)
		return 0
	}
	if w, ok := x.(*syntax.Word); ok && w.Lit() == text && !syntax.ValidName(text) {
		sh.failf("%s: syntax error: operand expected, or a number that is none", text)
		return 0
	}
	return sh.arithm(x)
}

// parseNumber parses a number in the notations of bash: 10, 010, 0xa, 16#a.
func parseNumber(text string) (int64, bool) {
	body, negative := strings.CutPrefix(text, "-")
	body = strings.TrimPrefix(body, "+")
	base := 10
	if head, digits, ok := strings.Cut(body, "#"); ok {
		b, err := strconv.Atoi(head)
		if err != nil || b < 2 || b > 36 {
			return 0, false
		}
		base, body = b, digits
	} else if rest, ok := strings.CutPrefix(strings.ToLower(body), "0x"); ok {
		base, body = 16, rest
	} else if len(body) > 1 && body[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(body, base, 64)
	if negative {
		n = -n
	}
	return int64(n), err == nil
}

func (sh *shell) unary(x *syntax.UnaryArithm) int64 {
	n := sh.arithm(x.X)
	switch x.Op {
	case syntax.Inc, syntax.Dec:
		changed := n + 1
		if x.Op == syntax.Dec {
			changed = n - 1
		}
		if sh.arithmAssign(x.X, changed); x.Post {
			return n
		}
		return changed
	}
	return sh.compute(&syntax.UnaryArithm{Op: x.Op, X: operand(n)})
}

func (sh *shell) arithmAssign(x syntax.ArithmExpr, n int64) {
	w, ok := x.(*syntax.Word)
	if !ok {
		sh.failf("attempted assignment to non-variable")
		return
	}
	name, index, ok := arithmName(w)
	if !ok {
		if name = sh.literal(w); !syntax.ValidName(name) {
			sh.failf("%s: attempted assignment to non-variable", name)
		}
	}
	sh.assignIndex(name, index, strconv.FormatInt(n, 10))
}

// assignOps maps assignments to their operators.
var assignOps = map[syntax.BinAritOperator]syntax.BinAritOperator{
	syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul, syntax.QuoAssgn: syntax.Quo,
	syntax.RemAssgn: syntax.Rem, syntax.AndAssgn: syntax.And, syntax.OrAssgn: syntax.Or, syntax.XorAssgn: syntax.Xor,
	syntax.ShlAssgn: syntax.Shl, syntax.ShrAssgn: syntax.Shr, syntax.Assgn: syntax.Comma,
}

func (sh *shell) binaryArithm(x *syntax.BinaryArithm) int64 {
	a := int64(0)
	if x.Op != syntax.Assgn {
		a = sh.arithm(x.X)
	}
	switch x.Op {
	case syntax.AndArit, syntax.OrArit:
		b := a
		if (a != 0) == (x.Op == syntax.AndArit) {
			b = sh.arithm(x.Y)
		}
		return sh.binaryOf(x.Op, a, b)
	case syntax.TernQuest:
		branches, ok := x.Y.(*syntax.BinaryArithm)
		switch {
		case !ok || branches.Op != syntax.TernColon:
			sh.failf("syntax error in expression: ':' expected")
			return 0
		case a != 0:
			return sh.arithm(branches.X)
		}
		return sh.arithm(branches.Y)
	}
	b := sh.arithm(x.Y)
	if op, ok := assignOps[x.Op]; ok {
		n := sh.binaryOf(op, a, b)
		sh.arithmAssign(x.X, n)
		return n
	}
	return sh.binaryOf(x.Op, a, b)
}

func (sh *shell) binaryOf(op syntax.BinAritOperator, a, b int64) int64 {
	if op == syntax.Shl || op == syntax.Shr {
		b &= 63
	}
	return sh.compute(&syntax.BinaryArithm{Op: op, X: operand(a), Y: operand(b)})
}

// compute applies an operator to numbers with package expand.
func (sh *shell) compute(x syntax.ArithmExpr) int64 {
	n, err := expand.Arithm(&expand.Config{}, x)
	if err != nil {
		sh.failf("%v", err)
	}
	return int64(n)
}

// operand returns a number in a form that package expand can read. It cannot read the smallest number.
func operand(n int64) syntax.ArithmExpr {
	if n == math.MinInt64 {
		return &syntax.BinaryArithm{Op: syntax.Sub, X: operand(n + 1), Y: operand(1)}
	}
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: strconv.FormatInt(n, 10)}}}
}
