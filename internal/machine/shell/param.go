package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// isAt says whether a parameter stands for a list of fields when it is quoted: "$@", "${a[@]}".
func isAt(pe *syntax.ParamExp) bool {
	return !pe.Length && (pe.Param.Value == "@" || indexWord(pe.Index) == "@")
}

func indexWord(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return w.Lit()
	}
	return ""
}

// operand is the value that an expansion works on.
type operand struct {
	values []string
	list   bool // $@, $*, ${a[@]}, ${a[*]}
	set    bool
}

func (e *expander) param(pe *syntax.ParamExp, quoted bool) error {
	p := e.p
	if err := p.b().err(); err != nil {
		return err
	}
	v, err := p.operand(pe)
	if err != nil {
		return err
	}
	if pe.Exp != nil {
		if done, err := e.alternative(pe, v, quoted); done || err != nil {
			return err
		}
	}
	if !v.set && !v.list && p.opt.nounset && (pe.Exp == nil || pe.Exp.Op > syntax.AssignUnsetOrNull) {
		return &fatal{p.complain("%s: unbound variable", pe.Param.Value)}
	}
	if pe.Length {
		n := utf8.RuneCountInString(strings.Join(v.values, ""))
		if v.list {
			n = len(v.values)
		}
		return e.value(strconv.Itoa(n), quoted)
	}
	if v, err = p.transform(pe, v); err != nil {
		return err
	}
	return e.emit(pe, v, quoted)
}

// emit adds an operand's values as fields.
func (e *expander) emit(pe *syntax.ParamExp, v operand, quoted bool) error {
	switch {
	case !v.list || !e.split && !isAt(pe):
		return e.value(joinIFS(e.p, v.values), quoted)
	case !e.split:
		return e.value(strings.Join(v.values, " "), quoted)
	case quoted && !isAt(pe):
		return e.add(joinIFS(e.p, v.values), true)
	}
	for i, s := range v.values {
		if i > 0 {
			if err := e.flush(quoted); err != nil {
				return err
			}
		}
		if err := e.value(s, quoted); err != nil {
			return err
		}
	}
	return nil
}

func (p *proc) operand(pe *syntax.ParamExp) (operand, error) {
	name := pe.Param.Value
	if pe.Excl {
		return p.indirect(pe)
	}
	if pe.Width {
		return operand{}, p.complain("${%%%s} does not exist on this machine", name)
	}
	switch name {
	case "@", "*":
		return operand{p.params, true, len(p.params) > 0}, nil
	}
	if pe.Index == nil {
		s, ok := p.get(name)
		return operand{[]string{s}, false, ok}, nil
	}
	v := p.vars[name]
	if v == nil {
		v = &variable{}
	}
	switch indexWord(pe.Index) {
	case "@", "*":
		all := v.values()
		return operand{all, true, len(all) > 0}, nil
	}
	s, ok, err := p.element(v, pe.Index)
	return operand{[]string{s}, false, ok}, err
}

// element of an array.
func (p *proc) element(v *variable, index syntax.ArithmExpr) (string, bool, error) {
	if v.assoc != nil {
		w, _ := index.(*syntax.Word)
		key, err := p.literal(w)
		s, ok := v.assoc[key]
		return s, ok, err
	}
	n, err := p.arith(index)
	if err != nil {
		return "", false, err
	}
	if v.list == nil {
		return v.str, v.set && n == 0, nil
	}
	if n < 0 && len(v.list) > 0 {
		n += int64(slices.Max(slices.Collect(maps.Keys(v.list))) + 1)
	}
	s, ok := v.list[int(n)]
	return s, ok, nil
}

// indirect is ${!name}, ${!name[@]} and ${!prefix*}.
func (p *proc) indirect(pe *syntax.ParamExp) (operand, error) {
	name := pe.Param.Value
	if pe.Names != 0 {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(p.vars)) {
			if strings.HasPrefix(n, name) {
				names = append(names, n)
			}
		}
		return operand{names, true, len(names) > 0}, nil
	}
	if w := indexWord(pe.Index); w == "@" || w == "*" {
		var keys []string
		if v := p.vars[name]; v != nil {
			keys = v.keys()
		}
		return operand{keys, true, len(keys) > 0}, nil
	}
	target, ok := p.get(name)
	if !ok || !validName(target) {
		return operand{}, p.complain("%s: invalid indirect expansion", name)
	}
	s, ok := p.get(target)
	return operand{[]string{s}, false, ok}, nil
}

// alternative does the operators that give another word: - = ? +.
func (e *expander) alternative(pe *syntax.ParamExp, v operand, quoted bool) (done bool, err error) {
	op, word := pe.Exp.Op, pe.Exp.Word
	there := v.set
	switch op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		there = there && strings.Join(v.values, "") != ""
	}
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if there {
			return true, e.inner(word, quoted)
		}
		return true, nil
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !there {
			return true, e.inner(word, quoted)
		}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !there {
			text, err := e.p.literal(word)
			if err != nil {
				return true, err
			}
			set(&text, "parameter null or not set")
			return true, &fatal{e.p.complain("%s: %s", pe.Param.Value, text)}
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !there {
			text, err := e.p.literal(word)
			if err == nil {
				err = e.p.set(pe.Param.Value, text)
			}
			if err != nil {
				return true, err
			}
			return true, e.value(text, quoted)
		}
	}
	return false, nil
}

func (e *expander) inner(w *syntax.Word, quoted bool) error {
	if w == nil {
		return nil
	}
	if !quoted {
		return e.word(w.Parts)
	}
	for _, part := range w.Parts {
		if err := e.part(part, true); err != nil {
			return err
		}
	}
	return nil
}

// transform does the operators that change values: # % / ^ , and slices.
func (p *proc) transform(pe *syntax.ParamExp, v operand) (operand, error) {
	var change func(string) (string, error)
	switch {
	case pe.Slice != nil:
		return p.slice(pe.Slice, v)
	case pe.Repl != nil:
		orig, err := p.patternOf(pe.Repl.Orig)
		if err != nil {
			return v, err
		}
		f, err := p.single(pe.Repl.With, false)
		if err != nil {
			return v, err
		}
		anchor := ""
		if lit := firstLit(pe.Repl.Orig); strings.HasPrefix(lit, "#") || strings.HasPrefix(lit, "%") {
			anchor = lit[:1]
			orig.items = orig.items[1:]
		}
		change = func(s string) (string, error) { return p.replace(s, orig, f.text(), pe.Repl.All, anchor) }
	case pe.Exp != nil && pe.Exp.Op >= syntax.RemSmallSuffix && pe.Exp.Op <= syntax.RemLargePrefix:
		pat, err := p.patternOf(pe.Exp.Word)
		if err != nil {
			return v, err
		}
		change = func(s string) (string, error) { return trim(s, pat, pe.Exp.Op), nil }
	case pe.Exp != nil && pe.Exp.Op >= syntax.UpperFirst && pe.Exp.Op <= syntax.LowerAll:
		change = func(s string) (string, error) { return changeCase(s, pe.Exp.Op), nil }
	case pe.Exp != nil && pe.Exp.Op == syntax.OtherParamOps:
		what, err := p.literal(pe.Exp.Word)
		if err != nil || what != "Q" {
			return v, p.complain("${%s@%s} does not exist on this machine", pe.Param.Value, what)
		}
		change = func(s string) (string, error) { return quoteWord(s), nil }
	default:
		return v, nil
	}
	out := operand{list: v.list, set: v.set}
	size := 0
	for _, s := range v.values {
		changed, err := change(s)
		if err != nil {
			return v, err
		}
		size += len(changed)
		if err := p.b().text(size); err != nil {
			return v, err
		}
		out.values = append(out.values, changed)
	}
	return out, nil
}

func firstLit(w *syntax.Word) string {
	if w != nil && len(w.Parts) > 0 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok {
			return lit.Value
		}
	}
	return ""
}

func trim(s string, pat *pattern, op syntax.ParExpOperator) string {
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if n := pat.prefix(s, op == syntax.RemLargePrefix); n > 0 {
			return s[n:]
		}
	default:
		if n := pat.suffix(s, op == syntax.RemLargeSuffix); n >= 0 {
			return s[:n]
		}
	}
	return s
}

func changeCase(s string, op syntax.ParExpOperator) string {
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(s)
	case syntax.LowerAll:
		return strings.ToLower(s)
	}
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	if op == syntax.UpperFirst {
		return string(unicode.ToUpper(r)) + s[n:]
	}
	return string(unicode.ToLower(r)) + s[n:]
}

func (p *proc) replace(s string, pat *pattern, with string, all bool, anchor string) (string, error) {
	switch anchor {
	case "#":
		if n := pat.prefix(s, true); n >= 0 {
			return with + s[n:], nil
		}
		return s, nil
	case "%":
		if n := pat.suffix(s, true); n >= 0 {
			return s[:n] + with, nil
		}
		return s, nil
	}
	var b strings.Builder
	for at := 0; at < len(s); {
		if err := p.b().err(); err != nil {
			return "", err
		}
		n := pat.prefix(s[at:], true)
		if n <= 0 {
			_, size := utf8.DecodeRuneInString(s[at:])
			b.WriteString(s[at : at+size])
			at += size
			continue
		}
		b.WriteString(with)
		at += n
		if err := p.b().text(b.Len()); err != nil {
			return "", err
		}
		if !all {
			b.WriteString(s[at:])
			break
		}
	}
	return b.String(), nil
}

func (p *proc) slice(sl *syntax.Slice, v operand) (operand, error) {
	var runes []rune
	n := int64(len(v.values))
	if !v.list {
		runes = []rune(strings.Join(v.values, ""))
		n = int64(len(runes))
	}
	from, to := int64(0), n
	var err error
	if sl.Offset != nil {
		if from, err = p.arith(sl.Offset); err != nil {
			return v, err
		}
	}
	if from < 0 {
		from = max(0, n+from)
	}
	from = min(from, n)
	if sl.Length != nil {
		length, err := p.arith(sl.Length)
		if err != nil {
			return v, err
		}
		if length < 0 {
			to = max(from, n+length)
		} else if length < n-from {
			to = from + length
		}
	}
	if v.list {
		return operand{v.values[from:to], true, v.set}, nil
	}
	return operand{[]string{string(runes[from:to])}, false, v.set}, nil
}

// quoteWord makes a word that the shell reads back as s.
func quoteWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
