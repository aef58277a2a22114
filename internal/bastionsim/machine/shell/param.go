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

// value is what a parameter has: one string, or several for $@, $* and whole arrays.
type value struct {
	list []string
	many bool
	star bool // joined in quotes
	set  bool
}

func one(text string, set bool) value { return value{list: []string{text}, set: set} }

func (v value) null() bool {
	return !v.set || len(v.list) == 0 || len(v.list) == 1 && v.list[0] == ""
}

// param expands a parameter into e.
func (sh *shell) param(e *expander, pe *syntax.ParamExp, quoted bool) error {
	v, err := sh.paramValue(e, pe, quoted)
	if err != nil || v == nil {
		return err
	}
	return e.value(*v, quoted)
}

func (e *expander) value(v value, quoted bool) error {
	switch {
	case !v.many:
		if len(v.list) == 0 {
			return e.result("", quoted)
		}
		return e.result(v.list[0], quoted)
	case quoted && v.star, !e.split:
		ifs := e.sh.get("IFS")
		sep := " "
		if s, ok := ifs.first(); ok && v.star {
			sep = s[:min(1, len(s))]
		}
		return e.result(strings.Join(v.list, sep), quoted)
	}
	for i, text := range v.list {
		if i > 0 {
			if err := e.next(); err != nil {
				return err
			}
		}
		if err := e.result(text, quoted); err != nil {
			return err
		}
	}
	return nil
}

// paramValue is the value of an expansion. It is nil if what it expands to is in e already.
func (sh *shell) paramValue(e *expander, pe *syntax.ParamExp, quoted bool) (*value, error) {
	if pe.Param == nil || pe.Flags != nil || pe.NestedParam != nil || pe.IsSet || pe.Width || len(pe.Modifiers) > 0 {
		return nil, failf("bad substitution")
	}
	name, index := pe.Param.Value, pe.Index
	if pe.Names != 0 {
		v := sh.namesWith(name)
		v.star = pe.Names == syntax.NamesPrefix
		return &v, nil
	}
	var err error
	var v value
	switch {
	case pe.Excl && index != nil && isAll(index):
		keys := sh.get(name).keys()
		v = value{list: keys, many: true, set: true, star: index.(*syntax.Word).Lit() == "*"}
	case pe.Excl:
		if v, err = sh.indirect(name, index); err != nil {
			return nil, err
		}
	default:
		if v, err = sh.lookup(name, index); err != nil {
			return nil, err
		}
	}
	if sh.nounset && !v.set && !v.many && !defaults(pe.Exp) && !(pe.Length && v.many) {
		return nil, &failure{msg: name + ": unbound variable", code: 1, exit: true}
	}
	switch {
	case pe.Length:
		n := len(v.list)
		if !v.many {
			n = utf8.RuneCountInString(strings.Join(v.list, ""))
		}
		v = one(strconv.Itoa(n), true)
	case pe.Slice != nil:
		err = sh.slice(&v, pe.Slice, name == "@" || name == "*")
	case pe.Repl != nil:
		err = sh.replaceAll(&v, pe.Repl)
	case pe.Exp != nil:
		return sh.operate(e, v, name, pe, quoted)
	}
	return &v, err
}

func defaults(exp *syntax.Expansion) bool {
	if exp == nil {
		return false
	}
	switch exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

func isAll(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// lookup is the value of a variable, an element or a special parameter.
func (sh *shell) lookup(name string, index syntax.ArithmExpr) (value, error) {
	switch name {
	case "@", "*":
		return value{list: sh.params, many: true, star: name == "*", set: len(sh.params) > 0}, nil
	case "#":
		return one(strconv.Itoa(len(sh.params)), true), nil
	case "?":
		return one(strconv.Itoa(sh.status), true), nil
	case "$":
		return one(strconv.FormatInt(sh.mainPID, 10), true), nil
	case "!":
		return one(sh.lastJob, sh.lastJob != ""), nil
	case "-":
		return one(sh.flagLetters(), true), nil
	case "0":
		return one(sh.name, true), nil
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(sh.params) {
			return one(sh.params[n-1], true), nil
		}
		return one("", false), nil
	}
	if name == "PIPESTATUS" {
		return sh.pipeStatusValue(index)
	}
	v := sh.get(name)
	if index == nil {
		text, set := v.first()
		return one(text, set), nil
	}
	if isAll(index) {
		list := v.values()
		return value{list: list, many: true, star: index.(*syntax.Word).Lit() == "*", set: len(list) > 0}, nil
	}
	text, set, err := sh.element(v, index)
	return one(text, set), err
}

func (sh *shell) pipeStatusValue(index syntax.ArithmExpr) (value, error) {
	var list []string
	for _, s := range sh.pipeStatus {
		list = append(list, strconv.Itoa(s))
	}
	if index != nil && isAll(index) {
		return value{list: list, many: true, set: true}, nil
	}
	n := int64(0)
	if index != nil {
		var err error
		if n, err = sh.arithm(index); err != nil {
			return value{}, err
		}
	}
	if n < 0 || n >= int64(len(list)) {
		return one("", false), nil
	}
	return one(list[n], true), nil
}

func (sh *shell) element(v variable, index syntax.ArithmExpr) (string, bool, error) {
	if v.kind == associative {
		key, err := sh.key(index)
		if err != nil {
			return "", false, err
		}
		text, ok := v.assoc[key]
		return text, ok, nil
	}
	n, err := sh.arithm(index)
	if err != nil {
		return "", false, err
	}
	if v.kind == scalar {
		return v.str, v.set && (n == 0 || n == -1), nil
	}
	i, err := sh.arrayIndex(v, strconv.FormatInt(n, 10))
	if err != nil {
		return "", false, err
	}
	text, ok := v.list[i]
	return text, ok, nil
}

// key is a subscript of an associative array: a word, or what looked like arithmetic to the parser.
func (sh *shell) key(index syntax.ArithmExpr) (string, error) {
	if w, ok := index.(*syntax.Word); ok {
		return sh.literal(w)
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, &syntax.ArithmCmd{X: index}); err != nil {
		return "", failf("bad array subscript")
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "(("), "))"), nil
}

func (sh *shell) namesWith(prefix string) value {
	all := map[string]bool{}
	for _, scope := range sh.scopes {
		for name := range scope {
			if strings.HasPrefix(name, prefix) {
				all[name] = true
			}
		}
	}
	return value{list: slices.Sorted(maps.Keys(all)), many: true, set: true}
}

// indirect is ${!name}.
func (sh *shell) indirect(name string, index syntax.ArithmExpr) (value, error) {
	if raw := sh.raw(name); raw.kind == nameref && index == nil {
		return one(raw.str, true), nil
	}
	v, err := sh.lookup(name, index)
	if err != nil || len(v.list) == 0 {
		return v, err
	}
	target := v.list[0]
	if base, sub, ok := strings.Cut(target, "["); ok && strings.HasSuffix(sub, "]") && syntax.ValidName(base) {
		return sh.elementByText(base, strings.TrimSuffix(sub, "]"))
	}
	if !syntax.ValidName(target) && !isNumber(target) && target != "@" && target != "*" && target != "#" && target != "?" {
		return value{}, failf("%s: invalid variable name", target)
	}
	return sh.lookup(target, nil)
}

func (sh *shell) elementByText(name, sub string) (value, error) {
	v := sh.get(name)
	switch {
	case sub == "@" || sub == "*":
		list := v.values()
		return value{list: list, many: true, star: sub == "*", set: len(list) > 0}, nil
	case v.kind == associative:
		text, ok := v.assoc[sub]
		return one(text, ok), nil
	}
	i, err := sh.arrayIndex(v, sub)
	if err != nil {
		return value{}, err
	}
	if v.kind == scalar {
		return one(v.str, v.set && i == 0), nil
	}
	text, ok := v.list[i]
	return one(text, ok), nil
}

func (sh *shell) slice(v *value, s *syntax.Slice, params bool) error {
	from, err := sh.arithm(s.Offset)
	if err != nil {
		return err
	}
	length, has := int64(0), s.Length != nil
	if has {
		if length, err = sh.arithm(s.Length); err != nil {
			return err
		}
	}
	cut := func(total int64) (int64, int64, error) {
		start := from
		if start < 0 {
			start += total
		}
		if start < 0 || start > total {
			return 0, 0, nil
		}
		end := total
		switch {
		case has && length < 0:
			if end = total + length; end < start {
				return 0, 0, failf("%d: substring expression < 0", length)
			}
		case has && length < total-start:
			end = start + length
		}
		return start, end, nil
	}
	if v.many {
		list := v.list
		if params {
			list = append([]string{sh.name}, list...)
			if from == 0 && has {
				length = max(length, 0)
			}
		}
		start, end, err := cut(int64(len(list)))
		v.list = list[start:end]
		return err
	}
	runes := []rune(strings.Join(v.list, ""))
	start, end, err := cut(int64(len(runes)))
	v.list = []string{string(runes[start:end])}
	return err
}

func (sh *shell) replaceAll(v *value, r *syntax.Replace) error {
	orig, err := sh.pattern(r.Orig)
	if err != nil {
		return err
	}
	with, err := sh.literal(r.With)
	if err != nil {
		return err
	}
	out := make([]string, len(v.list))
	total := 0
	for i, text := range v.list {
		if out[i], err = sh.substituteText(text, orig, with, r.All); err != nil {
			return err
		}
		if total += len(out[i]); total > sh.r.limits.String {
			return sh.r.kill("string")
		}
	}
	v.list = out
	return nil
}

// operate is ${name:-word} and what is like it.
func (sh *shell) operate(e *expander, v value, name string, pe *syntax.ParamExp, quoted bool) (*value, error) {
	exp := pe.Exp
	missing := !v.set
	switch exp.Op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		missing = v.null()
	}
	word := func() error {
		if exp.Word == nil {
			return e.result("", quoted)
		}
		return sh.parts(e, exp.Word.Parts, quoted, true)
	}
	switch exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if missing {
			return nil, e.result("", quoted)
		}
		return nil, word()
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if missing {
			return nil, word()
		}
		return &v, nil
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !missing {
			return &v, nil
		}
		text, err := sh.literal(exp.Word)
		if text == "" {
			text = "parameter null or not set"
		}
		if err == nil {
			err = &failure{msg: name + ": " + text, code: 127, exit: true}
		}
		return nil, err
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !missing {
			return &v, nil
		}
		text, err := sh.literal(exp.Word)
		if err == nil {
			err = sh.assignIndex(name, pe.Index, text)
		}
		v = one(text, true)
		return &v, err
	}
	return &v, sh.operateEach(&v, name, exp)
}

func (sh *shell) operateEach(v *value, name string, exp *syntax.Expansion) error {
	if exp.Op == syntax.OtherParamOps {
		return sh.transform(v, name, exp)
	}
	pat, err := sh.pattern(exp.Word)
	if err != nil {
		return err
	}
	out := make([]string, len(v.list))
	for i, text := range v.list {
		switch exp.Op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix:
			out[i], err = sh.trimPrefix(text, pat, exp.Op == syntax.RemLargePrefix)
		case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			out[i], err = sh.trimSuffix(text, pat, exp.Op == syntax.RemLargeSuffix)
		default:
			out[i], err = sh.changeCase(text, pat, exp.Op)
		}
		if err != nil {
			return err
		}
	}
	v.list = out
	return nil
}

func (sh *shell) changeCase(text, pat string, op syntax.ParExpOperator) (string, error) {
	fn := unicode.ToUpper
	if op == syntax.LowerFirst || op == syntax.LowerAll {
		fn = unicode.ToLower
	}
	all := op == syntax.UpperAll || op == syntax.LowerAll
	if pat == "" {
		pat = "?"
	}
	var b strings.Builder
	for i, c := range text {
		ok := all || i == 0
		if ok && pat != "?" {
			var err error
			if ok, err = sh.match(pat, string(c), false); err != nil {
				return "", err
			}
		}
		if ok {
			c = fn(c)
		}
		b.WriteRune(c)
	}
	return b.String(), nil
}

// transform is ${name@Q} and what is like it.
func (sh *shell) transform(v *value, name string, exp *syntax.Expansion) error {
	op, err := sh.literal(exp.Word)
	if err != nil {
		return err
	}
	if op == "a" {
		*v = one(attributes(sh.get(name)), true)
		return nil
	}
	out := make([]string, len(v.list))
	for i, text := range v.list {
		switch op {
		case "Q":
			if v.set {
				out[i] = quoteAlways(text)
			}
		case "E":
			out[i] = ansi(text)
		case "U":
			out[i] = strings.ToUpper(text)
		case "L":
			out[i] = strings.ToLower(text)
		case "u":
			out[i], err = sh.changeCase(text, "", syntax.UpperFirst)
		case "A":
			out[i] = name + "=" + quoteAlways(text)
		default:
			return failf("${%s@%s}: bad substitution", name, op)
		}
	}
	v.list = out
	return err
}

func attributes(v variable) string {
	var b strings.Builder
	for _, a := range []struct {
		on     bool
		letter byte
	}{{v.kind == indexed, 'a'}, {v.kind == associative, 'A'}, {v.integer, 'i'}, {v.lower, 'l'}, {v.kind == nameref, 'n'}, {v.readonly, 'r'}, {v.upper, 'u'}, {v.exported, 'x'}} {
		if a.on {
			b.WriteByte(a.letter)
		}
	}
	return b.String()
}
