package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (sh *shell) assignText(as *syntax.Assign) string {
	text := sh.literal(as.Value)
	if as.Append && sh.ok() {
		text = strings.Join(sh.lookup(as.Name.Value, as.Index).list, "") + text
	}
	if len(text) > maxString {
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
	default:
		sh.setElem(name, sh.indexText(sh.get(name), index), text)
	}
}

func (sh *shell) assignArray(name string, array *syntax.ArrayExpr, more bool) {
	old, target := sh.target(name)
	v := variable{set: true, elems: map[string]string{}, exported: old.exported}
	if v.kind = indexed; old.kind == associative {
		v.kind = associative
	}
	if more && (old.kind != scalar || old.set) {
		v = old
		v.own()
	}
	next := v.end()
	for _, elem := range array.Elems {
		if elem.Index != nil {
			text := sh.literal(elem.Value)
			sub := sh.subscript(v, sh.indexText(v, elem.Index))
			v.elems[sub] = text
			next, _ = strconv.ParseInt(sub, 10, 64) // next is used for indexed arrays only, where sub is a number
			next++
		} else {
			for _, word := range sh.fields([]*syntax.Word{elem.Value}) {
				if v.kind == associative {
					v.elems[word] = ""
					continue
				}
				v.elems[strconv.FormatInt(next, 10)] = word
				next++
			}
		}
		if len(v.elems) > maxFields {
			sh.kill("fields")
		}
		if !sh.ok() {
			return
		}
	}
	sh.assign(target, v)
}

// declaring is a call of declare or one of its relatives.
type declaring struct {
	flags
	name     string
	unexport bool
}

// declare implements export, readonly, local, declare and typeset. The arguments are expanded, except for assignments
// of an array or to an element.
func (sh *shell) declare(name string, args []any) {
	var words []string
	for len(args) > 0 {
		word, ok := args[0].(string)
		if !ok || !strings.HasPrefix(word, "-") {
			break
		}
		words, args = append(words, word), args[1:]
	}
	f, err := parseFlags(words, "+a A g n r x")
	switch {
	case err != nil:
		sh.failWith(2, "%v", err)
	case len(args) == 0:
		sh.failWith(2, "listing variables is not supported on this machine: see set and env")
	case name == "local" && sh.calls == 0:
		sh.failf("can only be used in a function")
	}
	d := &declaring{flags: f, name: name}
	switch name {
	case "export":
		d.unexport = f.has('n')
		f.set['x'], f.set['n'] = !d.unexport, false
	case "readonly":
		f.set['r'] = true
	}
	for _, arg := range args {
		if !sh.ok() {
			return
		}
		switch arg := arg.(type) {
		case *syntax.Assign:
			sh.declareName(d, arg.Name.Value, func(string) { sh.assignOne(arg) })
		case string:
			sh.declareText(d, arg)
		}
	}
}

// declClause runs declare with words that are not expanded yet.
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
		default: // before a new scope hides the variables in the value
			args = append(args, as.Name.Value+"="+sh.assignText(as))
		}
	}
	name := cmd.Variant.Value
	sh.declare(name, args)
	sh.errorOf(name)
}

func (sh *shell) declareText(d *declaring, arg string) {
	name, text, has := strings.Cut(arg, "=")
	name, more := strings.CutSuffix(name, "+")
	base, _, _ := strings.Cut(name, "[")
	sh.declareName(d, base, func(name string) {
		if has && more {
			text = sh.value(name) + text
		}
		if has {
			sh.set(name, text)
		}
	})
}

// declareName gives a variable its scope, its value and its attributes.
func (sh *shell) declareName(d *declaring, name string, assign func(name string)) {
	if !syntax.ValidName(name) {
		sh.failf("`%s': not a valid identifier", name)
		return
	}
	if d.name != "export" && d.name != "readonly" && sh.calls > 0 && !d.has('g') && !sh.local(name) {
		sh.store(sh.scopes[len(sh.scopes)-1], name, variable{})
	}
	v := sh.raw(name)
	if v.readonly {
		if assign(name); sh.ok() {
			v.exported = v.exported || d.has('x')
			sh.scopeOf(name)[name] = v
		}
		return
	}
	if d.has('n') { // the value is the name of another variable
		v.kind = scalar
		sh.assign(name, v)
	} else if before := d.apply(v); before.kind != v.kind {
		sh.assign(name, before)
	}
	if assign(name); !sh.ok() {
		return
	}
	if v = d.apply(sh.raw(name)); d.has('n') {
		v.kind = nameref
		if v.str == name {
			sh.failf("%s: nameref variable self references not allowed", name)
		}
	}
	v.readonly = d.has('r')
	sh.assign(name, v)
}

// apply changes all attributes except readonly, which is set last.
func (d *declaring) apply(v variable) variable {
	if d.has('A') && v.kind != associative {
		v = variable{kind: associative, elems: map[string]string{}, exported: v.exported}
	}
	if set := v.set; d.has('a') && v.kind == scalar {
		v.own()
		v.set = set
	}
	v.exported = (v.exported || d.has('x')) && !d.unexport
	return v
}

func attributes(v variable) string {
	letters := map[kind]string{indexed: "a", associative: "A", nameref: "n"}[v.kind]
	if v.readonly {
		letters += "r"
	}
	if v.exported {
		letters += "x"
	}
	return letters
}
