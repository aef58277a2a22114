package shell

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// value is the value of a parameter: one string, or several for $@, $* and whole arrays.
type value struct {
	list []string
	many bool
	star bool // joined in quotes
	gaps bool // of an indexed array that lacks elements
	set  bool
}

func one(text string, set bool) value { return value{list: []string{text}, set: set} }

func many(list []string, all string) value {
	return value{list: list, many: true, star: all == "*", set: len(list) > 0}
}

func number(n int) value { return one(strconv.Itoa(n), true) }

func (v value) null() bool { return !v.set || strings.Join(v.list, " ") == "" }

func (e *expander) value(v value, quoted bool) {
	switch {
	case !v.many:
		e.result(strings.Join(v.list, ""), quoted)
	case quoted && v.star, !e.split:
		sep := " "
		if ifs, set := e.sh.get("IFS").first(); set && v.star {
			_, size := utf8.DecodeRuneInString(ifs)
			sep = ifs[:size]
		}
		e.result(strings.Join(v.list, sep), quoted)
	default:
		for i, text := range v.list {
			if i > 0 {
				e.next()
			}
			e.result(text, quoted)
		}
	}
}

func (sh *shell) param(e *expander, pe *syntax.ParamExp, quoted bool) {
	if pe.Param == nil || pe.Flags != nil || pe.NestedParam != nil || pe.IsSet || pe.Width || len(pe.Modifiers) > 0 {
		sh.failf("bad substitution")
		return
	}
	var v value
	name, all := pe.Param.Value, allElements(pe.Index)
	switch {
	case pe.Excl && pe.Names == 0 && all == "":
		sh.failf("${!%s}: bad substitution: indirect expansion is not supported on this machine", name)
	case pe.Names != 0:
		v = value{list: sh.namesWith(name), many: true, star: pe.Names == syntax.NamesPrefix, set: true}
	case pe.Excl && all != "":
		keys, _ := sh.get(name).elements()
		v = value{list: keys, many: true, star: all == "*", set: true}
	default:
		v = sh.lookup(name, pe.Index)
	}
	if sh.nounset && !v.set && !v.many && !replacesMissing(pe.Exp) {
		sh.fatalf("%s: unbound variable", name)
	}
	switch {
	case !sh.ok():
		return
	case pe.Length && v.many:
		v = number(len(v.list))
	case pe.Length:
		v = number(utf8.RuneCountInString(v.list[0]))
	case pe.Slice != nil:
		sh.slice(&v, pe.Slice, name == "@" || name == "*")
	case pe.Repl != nil:
		pat, with := sh.pattern(pe.Repl.Orig), sh.literal(pe.Repl.With)
		sh.mapAll(&v, func(text string) string { return sh.replacePattern(text, pat, with, pe.Repl.All) })
	case replacesMissing(pe.Exp):
		if !sh.orWord(e, &v, pe, quoted) {
			return
		}
	case pe.Exp != nil && pe.Exp.Op == syntax.OtherParamOps:
		sh.transform(&v, name, sh.literal(pe.Exp.Word))
	case pe.Exp != nil:
		sh.trimOrChangeCase(&v, pe.Exp.Op, sh.pattern(pe.Exp.Word))
	}
	if sh.ok() {
		e.value(v, quoted)
	}
}

// allElements returns the index if it is @ or *, and "" otherwise.
func allElements(index syntax.ArithmExpr) string {
	if w, ok := index.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		return w.Lit()
	}
	return ""
}

// lookup returns the value of a variable, an element or a special parameter.
func (sh *shell) lookup(name string, index syntax.ArithmExpr) value {
	if index != nil && allElements(index) == "" {
		v := sh.get(name)
		return sh.element(v, sh.indexText(v, index))
	}
	return sh.lookupText(name, allElements(index))
}

// lookupText is like lookup, but with an expanded subscript, or "" for none.
func (sh *shell) lookupText(name, sub string) value {
	switch name {
	case "@", "*":
		return many(sh.params, name)
	case "#":
		return number(len(sh.params))
	case "?":
		return number(sh.status)
	case "$":
		return number(int(sh.mainPID))
	case "!":
		return one(sh.lastJob, sh.lastJob != "")
	case "-":
		return one(sh.flagLetters(), true)
	case "0":
		return one(sh.name, true)
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(sh.params) {
			return one(sh.params[n-1], true)
		}
		return one("", false)
	}
	v := sh.get(name)
	switch sub {
	case "":
		return one(v.first())
	case "@", "*":
		_, values := v.elements()
		all := many(values, sub)
		all.gaps = v.kind == indexed && v.end() > int64(len(values))
		return all
	}
	return sh.element(v, sub)
}

func (sh *shell) element(v variable, sub string) value {
	if v.kind == associative {
		text, ok := v.elems[sub]
		return one(text, ok)
	}
	n := sh.arithmText(sub)
	switch {
	case !sh.ok():
	case !v.array() && n != 0 && n != -1:
	case !v.array():
		return one(v.str, v.set)
	case n < 0 && v.end()+n < 0:
		sh.complain(&failure{msg: sub + ": bad array subscript"})
	default:
		text, ok := v.elems[sh.subscript(v, sub)]
		return one(text, ok)
	}
	return one("", false)
}

// indexText expands a subscript. The parser may have read that of an associative array as arithmetic.
func (sh *shell) indexText(v variable, index syntax.ArithmExpr) string {
	w, isWord := index.(*syntax.Word)
	switch {
	case v.kind != associative:
		return strconv.FormatInt(sh.arithm(index), 10)
	case isWord:
		return sh.literal(w)
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, &syntax.ArithmCmd{X: index}); err != nil {
		sh.failf("bad array subscript")
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "(("), "))")
}

func (sh *shell) namesWith(prefix string) []string {
	all := map[string]bool{}
	for _, scope := range sh.scopes {
		for name := range scope {
			if strings.HasPrefix(name, prefix) {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// slice evaluates ${name:offset:length}.
func (sh *shell) slice(v *value, s *syntax.Slice, params bool) {
	from, length := sh.arithm(s.Offset), int64(0)
	if s.Length != nil {
		length = sh.arithm(s.Length)
	}
	parts := v.list
	if !v.many {
		parts = strings.Split(v.list[0], "")
	} else if params {
		parts = append([]string{sh.name}, parts...)
	}
	total := int64(len(parts))
	count := total
	if v.gaps {
		sh.failf("slices of arrays with gaps are not supported on this machine")
		return
	}
	if from < 0 {
		from += total
	}
	if from < 0 || from > total {
		from, count, length = 0, 0, 0
	}
	end := count
	switch {
	case s.Length == nil:
	case length < 0 && (v.many || count+length < from):
		sh.failf("%d: substring expression < 0", length)
		return
	case length < 0:
		end = count + length
	case length < count-from:
		end = from + length
	}
	if v.list = parts[from:end]; !v.many {
		v.list = []string{strings.Join(v.list, "")}
	}
}

// mapAll replaces each string by the result of fn, and limits their total length.
func (sh *shell) mapAll(v *value, fn func(string) string) {
	out, total := make([]string, 0, len(v.list)), 0
	for _, text := range v.list {
		if !sh.ok() || sh.step(1) != nil {
			return
		}
		out = append(out, fn(text))
		if total += len(out[len(out)-1]); total > maxString {
			sh.kill("string")
		}
	}
	v.list = out
}

// replacesMissing reports whether an expansion is ${name:-word} or a similar one.
func replacesMissing(exp *syntax.Expansion) bool {
	return exp != nil && exp.Op >= syntax.AlternateUnset && exp.Op <= syntax.AssignUnsetOrNull
}

// orWord evaluates ${name:-word} and similar expansions. It returns false if it has added the result to e.
func (sh *shell) orWord(e *expander, v *value, pe *syntax.ParamExp, quoted bool) bool {
	op, missing := pe.Exp.Op, !v.set
	switch op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		missing = v.null()
	}
	alternate := op == syntax.AlternateUnset || op == syntax.AlternateUnsetOrNull
	switch {
	case alternate, missing && (op == syntax.DefaultUnset || op == syntax.DefaultUnsetOrNull):
		if alternate == missing || pe.Exp.Word == nil {
			e.result("", quoted)
		} else {
			sh.parts(e, pe.Exp.Word.Parts, quoted, true)
		}
		return false
	case !missing:
		return true
	}
	text := sh.literal(pe.Exp.Word)
	if op == syntax.ErrorUnset || op == syntax.ErrorUnsetOrNull {
		if text == "" {
			text = "parameter null or not set"
		}
		sh.fatalf("%s: %s", pe.Param.Value, text)
		return false
	}
	sh.assignIndex(pe.Param.Value, pe.Index, text)
	*v = one(text, true)
	return true
}

func (sh *shell) trimOrChangeCase(v *value, op syntax.ParExpOperator, pat string) {
	sh.mapAll(v, func(text string) string {
		switch op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix:
			return sh.trim(text, pat, false, op == syntax.RemLargePrefix)
		case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			return sh.trim(text, pat, true, op == syntax.RemLargeSuffix)
		}
		return sh.changeCase(text, pat, op)
	})
}

func (sh *shell) changeCase(text, pat string, op syntax.ParExpOperator) string {
	change := unicode.ToUpper
	if op == syntax.LowerFirst || op == syntax.LowerAll {
		change = unicode.ToLower
	}
	re := sh.globRegexp(cmp.Or(pat, "?"), pattern.EntireString, "%s")
	var b strings.Builder
	for i, c := range text {
		if (i == 0 || op == syntax.UpperAll || op == syntax.LowerAll) && re != nil && re.find(sh, string(c)) != nil {
			c = change(c)
		}
		b.WriteRune(c)
	}
	return b.String()
}

// transform evaluates ${name@Q} and similar expansions.
func (sh *shell) transform(v *value, name, op string) {
	flags := attributes(sh.raw(name))
	fn := map[string]func(string) string{
		"Q": quoteAlways, "K": quoteAlways, "k": quoteAlways, "E": ansi, "U": strings.ToUpper, "L": strings.ToLower,
		"P": func(text string) string { return text },
		"a": func(string) string { return flags },
		"u": func(text string) string { return sh.changeCase(text, "", syntax.UpperFirst) },
	}[op]
	switch {
	case fn == nil:
		sh.failf("${%s@%s}: bad substitution", name, op)
	case v.set || op == "a":
		sh.mapAll(v, fn)
	}
}
