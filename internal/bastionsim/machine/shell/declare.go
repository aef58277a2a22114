package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignText is the string of a scalar assignment.
func (sh *shell) assignText(as *syntax.Assign) (string, error) {
	if as.Value == nil {
		return "", nil
	}
	e := &expander{sh: sh}
	if err := sh.parts(e, as.Value.Parts, false, true); err != nil {
		return "", err
	}
	text := joinPieces(e.cur)
	if as.Append {
		v := sh.get(as.Name.Value)
		if v.integer {
			a, err := sh.arithmText(v.str)
			if err != nil {
				return "", err
			}
			b, err := sh.arithmText(text)
			return fmt.Sprint(a + b), err
		}
		old, err := sh.lookup(as.Name.Value, as.Index)
		if err != nil {
			return "", err
		}
		text = strings.Join(old.list, "") + text
	}
	if len(text) > sh.r.limits.String {
		return "", sh.r.kill("string")
	}
	return text, nil
}

func (sh *shell) assignOne(as *syntax.Assign) error {
	if as.Array != nil {
		return sh.assignArray(as.Name.Value, as.Array, as.Append)
	}
	text, err := sh.assignText(as)
	if err != nil {
		return err
	}
	return sh.assignIndex(as.Name.Value, as.Index, text)
}

// assignIndex sets a variable or, with an index, an element.
func (sh *shell) assignIndex(name string, index syntax.ArithmExpr, text string) error {
	if index == nil {
		return sh.set(name, text)
	}
	if sh.get(name).kind == associative {
		key, err := sh.key(index)
		if err != nil {
			return err
		}
		return sh.setElem(name, key, text)
	}
	n, err := sh.arithm(index)
	if err != nil {
		return err
	}
	return sh.setElem(name, fmt.Sprint(n), text)
}

func (sh *shell) assignArray(name string, array *syntax.ArrayExpr, more bool) error {
	v, target, err := sh.target(name)
	if err != nil {
		return err
	}
	fresh := variable{kind: indexed, set: true, owned: true, list: map[int]string{}, exported: v.exported, integer: v.integer}
	if v.kind == associative {
		fresh.kind, fresh.list, fresh.assoc = associative, nil, map[string]string{}
	}
	next := 0
	if more && v.kind == associative {
		fresh.assoc = maps.Clone(v.assoc)
	} else if more {
		if v.kind == indexed {
			fresh.list = maps.Clone(v.list)
		} else if v.set {
			fresh.list[0] = v.str
		}
		if all := fresh.indexes(); len(all) > 0 {
			next = all[len(all)-1] + 1
		}
	}
	for _, elem := range array.Elems {
		if next, err = sh.arrayElem(&fresh, elem, next); err != nil {
			return err
		}
		if len(fresh.list)+len(fresh.assoc) > sh.r.limits.Fields {
			return sh.r.kill("fields")
		}
	}
	return sh.assign(target, fresh)
}

func (sh *shell) arrayElem(v *variable, elem *syntax.ArrayElem, next int) (int, error) {
	if elem.Index == nil {
		words, err := sh.fields([]*syntax.Word{elem.Value})
		for _, w := range words {
			if v.kind == associative {
				v.assoc[w] = ""
				continue
			}
			if v.list[next], err = sh.convert(*v, w); err != nil {
				return next, err
			}
			next++
		}
		return next, err
	}
	text, err := sh.literal(elem.Value)
	if err != nil {
		return next, err
	}
	if v.kind == associative {
		key, err := sh.key(elem.Index)
		v.assoc[key] = text
		return next, err
	}
	n, err := sh.arithm(elem.Index)
	if err != nil {
		return next, err
	}
	i, err := sh.arrayIndex(*v, fmt.Sprint(n))
	if err != nil {
		return next, err
	}
	v.list[i], err = sh.convert(*v, text)
	return i + 1, err
}

// declaring is what declare and its relatives were called with.
type declaring struct {
	on, off         string // letters of attributes
	global, print   bool
	funcs, funcName bool
	local           bool
}

func newDeclaring(name string, inFunction bool) declaring {
	d := declaring{}
	switch name {
	case "export":
		d.on = "x"
	case "readonly":
		d.on = "r"
	case "nameref":
		d.on = "n"
	case "local", "declare", "typeset":
		d.local = inFunction
	}
	return d
}

// flag takes an argument that has attributes; ok is false if it is none.
func (d *declaring) flag(name, arg string) (ok bool, err error) {
	if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
		return false, nil
	}
	for _, c := range arg[1:] {
		switch c {
		case 'g':
			d.global = true
		case 'p':
			d.print = true
		case 'f':
			d.funcs = true
		case 'F':
			d.funcName = true
		case 'n':
			if name == "export" {
				d.on, d.off = strings.ReplaceAll(d.on, "x", ""), d.off+"x"
				continue
			}
			fallthrough
		case 'a', 'A', 'i', 'l', 'r', 'u', 'x', 't', 'I':
			if arg[0] == '-' {
				d.on += string(c)
			} else {
				d.off += string(c)
			}
		default:
			return true, &failure{msg: fmt.Sprintf("%s: %s: invalid option", name, arg), code: 2}
		}
	}
	return true, nil
}

// declare is export, readonly, local, declare and typeset.
func (sh *shell) declare(cmd *syntax.DeclClause) error {
	name := cmd.Variant.Value
	if name == "local" && sh.calls == 0 {
		return failf("local: can only be used in a function")
	}
	d := newDeclaring(name, sh.calls > 0)
	sh.status, sh.substited = 0, -1
	names := 0
	for _, as := range cmd.Args {
		if as.Name != nil {
			names++
			if err := sh.declareAssign(d, as); err != nil {
				return err
			}
			continue
		}
		words, err := sh.fields([]*syntax.Word{as.Value})
		if err != nil {
			return err
		}
		for _, w := range words {
			if flag, err := d.flag(name, w); err != nil {
				return err
			} else if flag || w == "--" || w == "-" {
				continue
			}
			names++
			if err := sh.declareText(d, w); err != nil {
				return err
			}
		}
	}
	if names == 0 {
		sh.printAll(d)
	}
	return nil
}

func (sh *shell) declareAssign(d declaring, as *syntax.Assign) error {
	if d.print || d.funcs || d.funcName {
		return sh.declareText(d, as.Name.Value)
	}
	var text string
	var err error
	if !as.Naked && as.Array == nil {
		if text, err = sh.assignText(as); err != nil { // before the new scope hides what it refers to
			return err
		}
	}
	if err := sh.declareName(d, as.Name.Value, func(name string) error {
		switch {
		case as.Naked:
			return nil
		case as.Array != nil:
			return sh.assignArray(name, as.Array, as.Append)
		}
		return sh.assignIndex(name, as.Index, text)
	}); err != nil {
		return err
	}
	return nil
}

func (sh *shell) declareText(d declaring, arg string) error {
	name, text, has := strings.Cut(arg, "=")
	more := strings.HasSuffix(name, "+")
	name = strings.TrimSuffix(name, "+")
	if d.funcs || d.funcName {
		fn, ok := sh.funcs[name]
		if !ok {
			sh.status = 1
			return nil
		}
		if d.funcName {
			return sh.print(name + "\n")
		}
		return sh.print(name + " () \n" + sh.sourceOf(fn.body) + "\n")
	}
	if base, _, ok := strings.Cut(name, "["); ok {
		name = base
	}
	if !syntax.ValidName(name) {
		return failf("`%s': not a valid identifier", arg)
	}
	if d.print {
		v := sh.raw(name)
		if !v.set && v.kind == scalar {
			return failf("declare: %s: not found", name)
		}
		return sh.print(declaration(name, v))
	}
	return sh.declareName(d, name, func(name string) error {
		if !has {
			return nil
		}
		if more {
			text = sh.value(name) + text
		}
		return sh.set(name, text)
	})
}

// declareName gives a variable its scope, its value and its attributes.
func (sh *shell) declareName(d declaring, name string, assign func(string) error) error {
	if !syntax.ValidName(name) {
		return failf("`%s': not a valid identifier", name)
	}
	scope := sh.scopes[len(sh.scopes)-1]
	if d.local && !d.global {
		if _, ok := scope[name]; !ok {
			if err := sh.store(scope, name, variable{}); err != nil {
				return err
			}
		}
	}
	v := sh.raw(name)
	if v.readonly && !strings.Contains(d.on, "r") {
		return failf("%s: readonly variable", name)
	}
	if !v.readonly {
		before := d.apply(v, false)
		if before.kind != v.kind || before.integer != v.integer || before.lower != v.lower || before.upper != v.upper {
			if err := sh.assign(name, before); err != nil {
				return err
			}
		}
	}
	if strings.Contains(d.on, "n") {
		return sh.declareRef(name, assign)
	}
	if err := assign(name); err != nil {
		return err
	}
	v = sh.raw(name)
	if after := d.apply(v, true); !v.readonly {
		return sh.assign(name, after)
	}
	return nil
}

// declareRef makes a variable a reference: what is assigned to it is a name.
func (sh *shell) declareRef(name string, assign func(string) error) error {
	v := sh.raw(name)
	v.kind = scalar
	if err := sh.assign(name, v); err != nil {
		return err
	}
	if err := assign(name); err != nil {
		return err
	}
	v = sh.raw(name)
	if v.str == name {
		return failf("%s: nameref variable self references not allowed", name)
	}
	v.kind = nameref
	return sh.assign(name, v)
}

// apply changes attributes; readonly comes last.
func (d declaring) apply(v variable, last bool) variable {
	for _, c := range d.on {
		switch c {
		case 'a':
			if v.kind == scalar {
				v.list, v.kind, v.owned = map[int]string{}, indexed, true
				if v.set {
					v.list[0] = v.str
				}
				v.str = ""
			}
		case 'A':
			if v.kind != associative {
				v = variable{kind: associative, assoc: map[string]string{}, owned: true, exported: v.exported}
			}
		case 'i':
			v.integer = true
		case 'l':
			v.lower, v.upper = true, false
		case 'u':
			v.upper, v.lower = true, false
		case 'x':
			v.exported = true
		case 'r':
			v.readonly = v.readonly || last
		}
	}
	for _, c := range d.off {
		switch c {
		case 'i':
			v.integer = false
		case 'l':
			v.lower = false
		case 'u':
			v.upper = false
		case 'x':
			v.exported = false
		}
	}
	return v
}

func (sh *shell) print(text string) error {
	_, err := sh.stream(1).Write([]byte(text))
	return err
}

func declaration(name string, v variable) string {
	flags := attributes(v)
	if flags == "" {
		flags = "-"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "declare -%s %s", flags, name)
	switch v.kind {
	case indexed, associative:
		values := v.values()
		b.WriteString("=(")
		for i, k := range v.keys() {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "[%s]=%s", k, doubleQuote(values[i]))
		}
		b.WriteByte(')')
	default:
		if v.set {
			b.WriteString("=" + doubleQuote(v.str))
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func doubleQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// printAll lists variables or functions.
func (sh *shell) printAll(d declaring) {
	if d.funcs || d.funcName {
		for _, name := range slices.Sorted(maps.Keys(sh.funcs)) {
			if sh.print("declare -f "+name+"\n") != nil {
				return
			}
		}
		return
	}
	for _, name := range sh.namesWith("").list {
		v := sh.raw(name)
		switch {
		case strings.Contains(d.on, "x") && !v.exported, strings.Contains(d.on, "r") && !v.readonly,
			strings.Contains(d.on, "a") && v.kind != indexed, strings.Contains(d.on, "A") && v.kind != associative:
			continue
		}
		if sh.print(declaration(name, v)) != nil {
			return
		}
	}
}
