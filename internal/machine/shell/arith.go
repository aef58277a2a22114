package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arith evaluates an arithmetic expression in 64 bits that wrap around.
func (p *proc) arith(x syntax.ArithmExpr) (int64, error) {
	if x == nil {
		return 0, nil
	}
	if err := p.b().err(); err != nil {
		return 0, err
	}
	switch x := x.(type) {
	case *syntax.Word:
		s, err := p.literal(x)
		if err != nil {
			return 0, err
		}
		return p.number(s, 0)
	case *syntax.ParenArithm:
		return p.arith(x.X)
	case *syntax.UnaryArithm:
		return p.unary(x)
	case *syntax.BinaryArithm:
		return p.binary(x)
	}
	return 0, p.complain("this arithmetic does not exist on this machine")
}

// number reads a number, or a variable that holds one, or one that holds a variable's name.
func (p *proc) number(s string, depth int) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	if depth > 16 {
		return 0, p.complain("%s: expression recursion level exceeded", s)
	}
	negative := strings.HasPrefix(s, "-")
	digits := strings.TrimPrefix(s, "-")
	if validName(digits) {
		value, _ := p.get(digits)
		n, err := p.number(value, depth+1)
		if negative {
			n = -n
		}
		return n, err
	}
	base := 0
	if radix, rest, ok := strings.Cut(digits, "#"); ok {
		n, err := strconv.Atoi(radix)
		if err != nil || n < 2 || n > 36 {
			return 0, p.complain("%s: invalid arithmetic base", clip(s))
		}
		base, digits = n, rest
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil || strings.Contains(digits, "_") {
		return 0, p.complain("%s: not a number", clip(s))
	}
	if negative {
		n = -n
	}
	return n, nil
}

func clip(s string) string { return s[:min(len(s), 64)] }

func (p *proc) unary(x *syntax.UnaryArithm) (int64, error) {
	if x.Op == syntax.Inc || x.Op == syntax.Dec {
		old, err := p.arith(x.X)
		if err != nil {
			return 0, err
		}
		n := old + 1
		if x.Op == syntax.Dec {
			n = old - 1
		}
		if err := p.assignArith(x.X, n); err != nil || !x.Post {
			return n, err
		}
		return old, nil
	}
	n, err := p.arith(x.X)
	switch x.Op {
	case syntax.Not:
		n = int64(b2i(n == 0))
	case syntax.BitNegation:
		n = ^n
	case syntax.Minus:
		n = -n
	}
	return n, err
}

func (p *proc) assignArith(x syntax.ArithmExpr, n int64) error {
	w, ok := x.(*syntax.Word)
	if ok && len(w.Parts) == 1 {
		if pe, isParam := w.Parts[0].(*syntax.ParamExp); isParam && pe.Index != nil {
			return p.assignElement(pe.Param.Value, pe.Index, strconv.FormatInt(n, 10), false)
		}
	}
	if !ok || !validName(w.Lit()) {
		return p.complain("attempted assignment to non-variable")
	}
	return p.set(w.Lit(), strconv.FormatInt(n, 10))
}

func (p *proc) binary(x *syntax.BinaryArithm) (int64, error) {
	switch x.Op {
	case syntax.AndArit, syntax.OrArit:
		a, err := p.arith(x.X)
		if err != nil || (a != 0) == (x.Op == syntax.OrArit) {
			return int64(b2i(a != 0)), err
		}
		b, err := p.arith(x.Y)
		return int64(b2i(b != 0)), err
	case syntax.TernQuest:
		return p.ternary(x)
	case syntax.Assgn:
		n, err := p.arith(x.Y)
		if err != nil {
			return 0, err
		}
		return n, p.assignArith(x.X, n)
	}
	a, err := p.arith(x.X)
	if err != nil {
		return 0, err
	}
	b, err := p.arith(x.Y)
	if err != nil {
		return 0, err
	}
	if op, ok := assigning[x.Op]; ok {
		n, err := p.compute(op, a, b)
		if err != nil {
			return 0, err
		}
		return n, p.assignArith(x.X, n)
	}
	return p.compute(x.Op, a, b)
}

func (p *proc) ternary(x *syntax.BinaryArithm) (int64, error) {
	cond, err := p.arith(x.X)
	if err != nil {
		return 0, err
	}
	branches, ok := x.Y.(*syntax.BinaryArithm)
	if !ok {
		return 0, p.complain("expected : in arithmetic")
	}
	if cond != 0 {
		return p.arith(branches.X)
	}
	return p.arith(branches.Y)
}

var assigning = map[syntax.BinAritOperator]syntax.BinAritOperator{
	syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul, syntax.QuoAssgn: syntax.Quo,
	syntax.RemAssgn: syntax.Rem, syntax.AndAssgn: syntax.And, syntax.OrAssgn: syntax.Or, syntax.XorAssgn: syntax.Xor,
	syntax.ShlAssgn: syntax.Shl, syntax.ShrAssgn: syntax.Shr,
}

func (p *proc) compute(op syntax.BinAritOperator, a, b int64) (int64, error) {
	switch op {
	case syntax.Add:
		return a + b, nil
	case syntax.Sub:
		return a - b, nil
	case syntax.Mul:
		return a * b, nil
	case syntax.Quo, syntax.Rem:
		if b == 0 {
			return 0, p.complain("division by 0")
		}
		if op == syntax.Quo {
			return a / b, nil
		}
		return a % b, nil
	case syntax.Pow:
		if b < 0 {
			return 0, p.complain("exponent less than 0")
		}
		n := int64(1)
		for ; b > 0; b >>= 1 {
			if b&1 == 1 {
				n *= a
			}
			a *= a
		}
		return n, nil
	case syntax.Shl:
		return a << (uint64(b) & 63), nil
	case syntax.Shr:
		return a >> (uint64(b) & 63), nil
	case syntax.And:
		return a & b, nil
	case syntax.Or:
		return a | b, nil
	case syntax.Xor:
		return a ^ b, nil
	case syntax.Comma:
		return b, nil
	case syntax.Eql:
		return int64(b2i(a == b)), nil
	case syntax.Neq:
		return int64(b2i(a != b)), nil
	case syntax.Lss:
		return int64(b2i(a < b)), nil
	case syntax.Leq:
		return int64(b2i(a <= b)), nil
	case syntax.Gtr:
		return int64(b2i(a > b)), nil
	case syntax.Geq:
		return int64(b2i(a >= b)), nil
	}
	return 0, p.complain("this arithmetic does not exist on this machine")
}
