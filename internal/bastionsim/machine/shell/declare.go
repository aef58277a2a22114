package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignText is the string of a scalar assignment.
func (sh *shell) assignText(as *syntax.Assign) string {
	text := sh.literal(as.Value)
	if as.Append && sh.ok() {
		if v := sh.get(as.Name.Value); v.integer {
			return fmt.Sprint(sh.arithmText(v.str) + sh.arithmText(text))
		}
		text = strings.Join(sh.lookup(as.Name.Value, as.Index).list, "") + text
	}
	if len(text) > sh.r.limits.String {
		sh.kill("string")
	}
	return text
}

func (sh *shell) assignOne(as *syntax.Assign) {
	if as.Array != nil {
		sh.assignArray(as.Name.Value, as.Array, as.Append)
	} else {
		sh.assignIndex(as.Name.Value, as.Index, sh.assignText(as))
	}
}

// assignIndex sets a variable or, with an index, an element.
func (sh *shell) assignIndex(name string, index syntax.ArithmExpr, text string) {
	switch {
	case !sh.ok():
	case index == nil:
		sh.set(name, text)
	case sh.get(name).kind == associative:
		sh.setElem(name, sh.key(index), text)
	default:
		sh.setElem(name, fmt.Sprint(sh.arithm(index)), text)
	}
}

func (sh *shell) assignArray(name string, array *syntax.ArrayExpr, more bool) {
	v, target := sh.target(name)
	fresh := variable{kind: indexed, set: true, owned: true, list: map[int]string{}, exported: v.exported, integer: v.integer}
	if v.kind == associative {
		fresh.kind, fresh.list, fresh.assoc = associative, nil, map[string]string{}
	}
	if more && (v.kind != scalar || v.set) {
		fresh = v
		fresh.owned = false
		fresh.asList()
	}
	next := int(fresh.end())
	for _, elem := range array.Elems {
		next = sh.arrayElem(&fresh, elem, next)
		if len(fresh.list)+len(fresh.assoc) > sh.r.limits.Fields {
			sh.kill("fields")
		}
		if !sh.ok() {
			return
		}
	}
	sh.assign(target, fresh)
}

// arrayElem adds what an element of an array expression gives, and returns the index of the next one.
func (sh *shell) arrayElem(v *variable, elem *syntax.ArrayElem, next int) int {
	if elem.Index == nil {
		for _, word := range sh.fields([]*syntax.Word{elem.Value}) {
			if v.kind == associative {
				v.assoc[word] = ""
				continue
			}
			v.list[next] = sh.convert(*v, word)
			next++
		}
		return next
	}
	text := sh.literal(elem.Value)
	if v.kind == associative {
		v.assoc[sh.key(elem.Index)] = text
		return next
	}
	if next = sh.arrayIndex(*v, fmt.Sprint(sh.arithm(elem.Index))); sh.ok() {
		v.list[next] = sh.convert(*v, text)
	}
	return next + 1
}

// declaring is what declare and its relatives were called with.
type declaring struct {
	name             string
	on, off          string // letters of attributes
	global, print    bool
	funcs, funcNames bool
}

// flag takes an argument that has attributes. It is false if the argument has none.
func (sh *shell) declareFlag(d *declaring, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
		return arg == "-"
	}
	for _, c := range strings.TrimPrefix(arg[1:], "-") {
		switch {
		case c == 'g':
			d.global = true
		case c == 'p':
			d.print = true
		case c == 'f':
			d.funcs = true
		case c == 'F':
			d.funcNames = true
		case c == 'n' && d.name == "export":
			d.on, d.off = "", d.off+"x"
		case !strings.ContainsRune("aAilnruxtI", c):
			sh.fail(&failure{msg: arg + ": invalid option", code: 2})
		case arg[0] == '-':
			d.on += string(c)
		default:
			d.off += string(c)
		}
	}
	return true
}

// declare is export, readonly, local, declare and typeset. The arguments have been expanded, but for assignments whose value
// is an array or belongs to an element.
func (sh *shell) declare(name string, args []any) {
	d := &declaring{name: name}
	switch name {
	case "export":
		d.on = "x"
	case "readonly":
		d.on = "r"
	case "local":
		if sh.calls == 0 {
			sh.failf("can only be used in a function")
		}
	}
	names := 0
	for _, arg := range args {
		if !sh.ok() {
			return
		}
		switch arg := arg.(type) {
		case *syntax.Assign:
			sh.declareName(d, arg.Name.Value, func(string) { sh.assignOne(arg) })
		case string:
			if sh.declareFlag(d, arg) {
				continue
			}
			sh.declareText(d, arg)
		}
		names++
	}
	if names == 0 && sh.ok() {
		sh.printAll(d)
	}
}

// declClause is declare with words that are not expanded yet.
func (sh *shell) declClause(cmd *syntax.DeclClause) {
	var args []any
	sh.status, sh.substituted = 0, -1
	for _, as := range cmd.Args {
		switch {
		case as.Name == nil:
			for _, word := range sh.fields([]*syntax.Word{as.Value}) {
				args = append(args, word)
			}
		case as.Array != nil || as.Index != nil:
			args = append(args, as)
		case as.Naked:
			args = append(args, as.Name.Value)
		default: // before a new scope hides what the value refers to
			args = append(args, as.Name.Value+"="+sh.assignText(as))
		}
	}
	if sh.xtrace && sh.ok() {
		words := []string{cmd.Variant.Value}
		for _, arg := range args {
			words = append(words, fmt.Sprint(arg))
		}
		sh.trace(words)
	}
	sh.declare(cmd.Variant.Value, args)
	if f, ok := sh.err.(*failure); ok {
		f.msg = cmd.Variant.Value + ": " + f.msg
	}
}

func (sh *shell) declareText(d *declaring, arg string) {
	name, text, has := strings.Cut(arg, "=")
	name, more := strings.CutSuffix(name, "+")
	fn, isFunc := sh.funcs[name]
	base, _, _ := strings.Cut(name, "[")
	switch {
	case (d.funcs || d.funcNames) && !isFunc:
		sh.status = 1
	case d.funcNames:
		sh.print(name + "\n")
	case d.funcs:
		sh.print(name + " () \n" + sh.sourceOf(fn) + "\n")
	case d.print:
		if v := sh.raw(name); v.set || v.kind != scalar {
			sh.print(declaration(name, v))
		} else {
			sh.failf("%s: not found", name)
		}
	default:
		sh.declareName(d, base, func(name string) {
			if has && more {
				text = sh.value(name) + text
			}
			if has {
				sh.set(name, text)
			}
		})
	}
}

// declareName gives a variable its scope, its value and its attributes.
func (sh *shell) declareName(d *declaring, name string, assign func(name string)) {
	if !syntax.ValidName(name) {
		sh.failf("`%s': not a valid identifier", name)
		return
	}
	if d.name != "export" && d.name != "readonly" && sh.calls > 0 && !d.global {
		if scope := sh.scopes[len(sh.scopes)-1]; !sh.local(name) {
			sh.store(scope, name, variable{})
		}
	}
	v := sh.raw(name)
	if v.readonly {
		if assign(name); sh.ok() {
			v.exported = v.exported || strings.Contains(d.on, "x")
			sh.scopeOf(name)[name] = v
		}
		return
	}
	if before := d.apply(v); before.kind != v.kind || before.integer != v.integer || before.lower != v.lower || before.upper != v.upper {
		sh.assign(name, before)
	}
	if strings.Contains(d.on, "n") { // what is assigned is the name of another
		v.kind = scalar
		sh.assign(name, v)
		assign(name)
		if v = sh.raw(name); v.str == name {
			sh.failf("%s: nameref variable self references not allowed", name)
		}
		v.kind = nameref
		sh.assign(name, v)
		return
	}
	if assign(name); sh.ok() {
		v = d.apply(sh.raw(name))
		v.readonly = strings.Contains(d.on, "r")
		sh.assign(name, v)
	}
}

// apply changes attributes, but for readonly, which comes last.
func (d *declaring) apply(v variable) variable {
	if strings.Contains(d.on, "A") && v.kind != associative {
		v = variable{kind: associative, assoc: map[string]string{}, owned: true, exported: v.exported}
	}
	if set := v.set; strings.Contains(d.on, "a") && v.kind == scalar {
		v.asList()
		v.set = set
	}
	for _, change := range []struct {
		letters string
		to      bool
	}{{d.off, false}, {d.on, true}} {
		for _, c := range change.letters {
			switch c {
			case 'i':
				v.integer = change.to
			case 'l':
				v.lower, v.upper = change.to, v.upper && !change.to
			case 'u':
				v.upper, v.lower = change.to, v.lower && !change.to
			case 'x':
				v.exported = change.to
			}
		}
	}
	return v
}

func (sh *shell) print(text string) {
	_, err := sh.stream(1).Write([]byte(text))
	sh.fail(err)
}

// attributes are the letters of a variable's attributes.
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

// declaration is the command that makes a variable what it is.
func declaration(name string, v variable) string {
	flags := attributes(v)
	if flags == "" {
		flags = "-"
	}
	text := "declare -" + flags + " " + name
	switch {
	case !v.set && len(v.list)+len(v.assoc) == 0:
	case v.kind == indexed || v.kind == associative:
		values, elems := v.values(), v.keys()
		for i := range elems {
			elems[i] = "[" + elems[i] + "]=" + doubleQuote(values[i])
		}
		space := map[bool]string{true: " "}[v.kind == associative && len(elems) > 0]
		text += "=(" + strings.Join(elems, " ") + space + ")"
	default:
		text += "=" + doubleQuote(v.str)
	}
	return text + "\n"
}

func doubleQuote(text string) string { return `"` + backslash(text, "\\\"$`") + `"` }

// printAll lists variables or functions.
func (sh *shell) printAll(d *declaring) {
	if d.funcs || d.funcNames {
		for _, name := range slices.Sorted(maps.Keys(sh.funcs)) {
			sh.print("declare -f " + name + "\n")
		}
		return
	}
	for _, name := range sh.namesWith("") {
		v := sh.raw(name)
		if strings.Trim(d.on, attributes(v)) == "" && (v.set || v.kind != scalar) {
			sh.print(declaration(name, v))
		}
	}
}
