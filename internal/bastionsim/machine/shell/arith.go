package shell

import (
	"math"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithm evaluates an expression in 64 bits, as bash does.
func (sh *shell) arithm(x syntax.ArithmExpr) (int64, error) {
	leave, err := sh.deeper()
	defer leave()
	if err == nil {
		err = sh.step(1)
	}
	if err != nil {
		return 0, err
	}
	switch x := x.(type) {
	case nil:
		return 0, nil
	case *syntax.Word:
		return sh.arithmWord(x)
	case *syntax.ParenArithm:
		return sh.arithm(x.X)
	case *syntax.UnaryArithm:
		return sh.unary(x)
	case *syntax.BinaryArithm:
		return sh.binaryArithm(x)
	}
	return 0, failf("%T: syntax error in expression", x)
}

func (sh *shell) arithmWord(w *syntax.Word) (int64, error) {
	if name, index, ok := arithmName(w); ok && (index != nil || len(name) > 0 && (name[0] < '0' || name[0] > '9')) {
		v, err := sh.lookup(name, index)
		if err != nil {
			return 0, err
		}
		if !v.set && sh.nounset {
			return 0, &failure{msg: name + ": unbound variable", code: 1, exit: true}
		}
		return sh.arithmText(strings.Join(v.list, " "))
	}
	text, err := sh.literal(w)
	if err != nil {
		return 0, err
	}
	return sh.arithmText(text)
}

// arithmName is a variable or an element without a dollar sign.
func arithmName(w *syntax.Word) (string, syntax.ArithmExpr, bool) {
	if len(w.Parts) != 1 {
		return "", nil, false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.Lit:
		return part.Value, nil, syntax.ValidName(part.Value)
	case *syntax.ParamExp:
		if part.Short && !part.Dollar.IsValid() && part.Param != nil {
			return part.Param.Value, part.Index, true
		}
		if part.Short && part.Index != nil && part.Param != nil {
			return part.Param.Value, part.Index, true
		}
	}
	return "", nil, false
}

// arithmText evaluates a text: a number, or an expression that a variable holds.
func (sh *shell) arithmText(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	if n, ok := parseNumber(text); ok {
		return n, nil
	}
	if text[0] >= '0' && text[0] <= '9' && !strings.ContainsAny(text, " +-*/%<>=&|^!~?:,()[]") {
		return 0, failf("%s: value too great for base or not a number", text)
	}
	leave, err := sh.deeper()
	defer leave()
	if err == nil {
		err = sh.step(1 + len(text)/16)
	}
	if err != nil {
		return 0, err
	}
	if len(text) > 4096 {
		return 0, failf("the expression is too long")
	}
	x, err := parseArithm(text)
	if err != nil {
		return 0, failf("%v", err)
	}
	if w, ok := x.(*syntax.Word); ok && w.Lit() == text && !syntax.ValidName(text) {
		return 0, failf("%s: syntax error: operand expected", text)
	}
	return sh.arithm(x)
}

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
	if body == "" || body[0] == '-' || body[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(body, base, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

func (sh *shell) unary(x *syntax.UnaryArithm) (int64, error) {
	if x.Op == syntax.Inc || x.Op == syntax.Dec {
		old, err := sh.arithm(x.X)
		if err != nil {
			return 0, err
		}
		changed := old + 1
		if x.Op == syntax.Dec {
			changed = old - 1
		}
		if err := sh.arithmAssign(x.X, changed); err != nil {
			return 0, err
		}
		if x.Post {
			return old, nil
		}
		return changed, nil
	}
	n, err := sh.arithm(x.X)
	switch x.Op {
	case syntax.Not:
		return truth(n == 0), err
	case syntax.BitNegation:
		return ^n, err
	case syntax.Minus:
		return -n, err
	}
	return n, err
}

func truth(ok bool) int64 {
	if ok {
		return 1
	}
	return 0
}

func (sh *shell) arithmAssign(x syntax.ArithmExpr, n int64) error {
	w, ok := x.(*syntax.Word)
	if !ok {
		return failf("attempted assignment to non-variable")
	}
	name, index, ok := arithmName(w)
	if !ok {
		text, err := sh.literal(w)
		if err != nil {
			return err
		}
		if name = text; !syntax.ValidName(name) {
			return failf("%s: attempted assignment to non-variable", text)
		}
	}
	return sh.assignIndex(name, index, strconv.FormatInt(n, 10))
}

// assignOps are the operators behind assignments.
var assignOps = map[syntax.BinAritOperator]syntax.BinAritOperator{
	syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul, syntax.QuoAssgn: syntax.Quo,
	syntax.RemAssgn: syntax.Rem, syntax.AndAssgn: syntax.And, syntax.OrAssgn: syntax.Or, syntax.XorAssgn: syntax.Xor,
	syntax.ShlAssgn: syntax.Shl, syntax.ShrAssgn: syntax.Shr,
}

func (sh *shell) binaryArithm(x *syntax.BinaryArithm) (int64, error) {
	if x.Op == syntax.Assgn {
		n, err := sh.arithm(x.Y)
		if err == nil {
			err = sh.arithmAssign(x.X, n)
		}
		return n, err
	}
	a, err := sh.arithm(x.X)
	if err != nil {
		return 0, err
	}
	switch x.Op {
	case syntax.AndArit, syntax.OrArit:
		if (a != 0) == (x.Op == syntax.OrArit) {
			return truth(a != 0), nil
		}
		b, err := sh.arithm(x.Y)
		return truth(b != 0), err
	case syntax.TernQuest:
		branches, ok := x.Y.(*syntax.BinaryArithm)
		if !ok || branches.Op != syntax.TernColon {
			return 0, failf("syntax error in expression: ':' expected")
		}
		if a != 0 {
			return sh.arithm(branches.X)
		}
		return sh.arithm(branches.Y)
	}
	b, err := sh.arithm(x.Y)
	if err != nil {
		return 0, err
	}
	if op, ok := assignOps[x.Op]; ok {
		n, err := compute(op, a, b)
		if err == nil {
			err = sh.arithmAssign(x.X, n)
		}
		return n, err
	}
	return compute(x.Op, a, b)
}

func compute(op syntax.BinAritOperator, a, b int64) (int64, error) {
	switch op {
	case syntax.Add:
		return a + b, nil
	case syntax.Sub:
		return a - b, nil
	case syntax.Mul:
		return a * b, nil
	case syntax.Quo, syntax.Rem:
		if b == 0 {
			return 0, failf("division by 0")
		}
		if a == math.MinInt64 && b == -1 {
			return map[bool]int64{true: a, false: 0}[op == syntax.Quo], nil
		}
		if op == syntax.Quo {
			return a / b, nil
		}
		return a % b, nil
	case syntax.Pow:
		return power(a, b)
	case syntax.Eql:
		return truth(a == b), nil
	case syntax.Neq:
		return truth(a != b), nil
	case syntax.Gtr:
		return truth(a > b), nil
	case syntax.Lss:
		return truth(a < b), nil
	case syntax.Leq:
		return truth(a <= b), nil
	case syntax.Geq:
		return truth(a >= b), nil
	case syntax.And:
		return a & b, nil
	case syntax.Or:
		return a | b, nil
	case syntax.Xor:
		return a ^ b, nil
	case syntax.Shl:
		return a << uint(b&63), nil
	case syntax.Shr:
		return a >> uint(b&63), nil
	case syntax.Comma:
		return b, nil
	}
	return 0, failf("%s: operator not supported", op)
}

func power(a, b int64) (int64, error) {
	if b < 0 {
		return 0, failf("exponent less than 0")
	}
	n := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			n *= a
		}
		a *= a
	}
	return n, nil
}
