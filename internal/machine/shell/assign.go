package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign does name=value, name+=value, name[i]=value and name=(...). kind is -a or -A of a declaration.
func (p *proc) assign(as *syntax.Assign, kind string) error {
	name := as.Name.Value
	if as.Array != nil {
		return p.assignArray(name, as, kind)
	}
	value, err := p.literal(as.Value)
	if err != nil {
		return err
	}
	if as.Index != nil {
		return p.assignElement(name, as.Index, value, as.Append)
	}
	if as.Append {
		old, _ := p.get(name)
		if err := p.b().text(len(old) + len(value)); err != nil {
			return err
		}
		value = old + value
	}
	return p.set(name, value)
}

func (p *proc) assignElement(name string, index syntax.ArithmExpr, value string, add bool) error {
	var failed error
	key, n := "", int64(0)
	if v := p.vars[name]; v != nil && v.assoc != nil {
		w, _ := index.(*syntax.Word)
		key, failed = p.literal(w)
	} else if n, failed = p.arith(index); failed == nil && n < 0 {
		failed = p.complain("%s: bad array subscript", name)
	}
	if failed != nil {
		return failed
	}
	return p.update(name, func(v *variable) {
		v.set = true
		if v.assoc != nil {
			if add {
				value = v.assoc[key] + value
			}
			v.assoc[key] = value
			return
		}
		if v.list == nil {
			v.list = map[int]string{}
			if v.str != "" {
				v.list[0], v.str = v.str, ""
			}
		}
		if add {
			value = v.list[int(n)] + value
		}
		v.list[int(n)] = value
	})
}

func (p *proc) assignArray(name string, as *syntax.Assign, kind string) error {
	old := p.vars[name]
	if kind == "-A" || old != nil && old.assoc != nil {
		return p.assignAssoc(name, as)
	}
	list, next := map[int]string{}, 0
	if as.Append && old != nil {
		list = maps.Clone(old.list)
		if list == nil {
			list = map[int]string{0: old.str}
		}
		next = slices.Max(append(slices.Collect(maps.Keys(list)), -1)) + 1
	}
	for _, elem := range as.Array.Elems {
		if elem.Index != nil {
			n, err := p.arith(elem.Index)
			if err != nil || n < 0 {
				return p.complain("%s: bad array subscript", name)
			}
			next = int(n)
			if list[next], err = p.literal(elem.Value); err != nil {
				return err
			}
			next++
			continue
		}
		values, err := p.fieldsOf(elem.Value)
		if err != nil {
			return err
		}
		for _, v := range values {
			list[next] = v
			next++
		}
		if len(list) > p.b().limits.Fields {
			return p.b().fail(ErrFields)
		}
	}
	return p.update(name, func(v *variable) { v.list, v.str, v.set = list, "", true })
}

func (p *proc) assignAssoc(name string, as *syntax.Assign) error {
	assoc := map[string]string{}
	if old := p.vars[name]; as.Append && old != nil {
		maps.Copy(assoc, old.assoc)
	}
	for _, elem := range as.Array.Elems {
		w, ok := elem.Index.(*syntax.Word)
		if !ok {
			return p.complain("%s: must use subscript when assigning associative array", name)
		}
		key, err := p.literal(w)
		if err != nil {
			return err
		}
		if assoc[key], err = p.literal(elem.Value); err != nil {
			return err
		}
	}
	return p.update(name, func(v *variable) { v.assoc, v.list, v.str, v.set = assoc, nil, "", true })
}

// declare does declare, local, export, readonly and their options.
func (p *proc) declare(cmd *syntax.DeclClause) error {
	d := &declaration{local: cmd.Variant.Value == "local" || (cmd.Variant.Value != "export" && cmd.Variant.Value != "readonly" && p.inFunction())}
	switch cmd.Variant.Value {
	case "local":
		if !p.inFunction() {
			return p.complain("local: can only be used in a function")
		}
	case "export":
		d.exported = true
	case "readonly":
		d.readonly = true
	case "nameref":
		return p.complain("name references do not exist on this machine")
	}
	p.status = 0
	done := false
	for _, as := range cmd.Args {
		named, err := p.declared(as)
		if err != nil {
			return err
		}
		for _, as := range named {
			if name := as.Name.Value; strings.HasPrefix(name, "-") || strings.HasPrefix(name, "+") {
				if err := d.option(p, name); err != nil {
					return err
				}
				continue
			}
			done = true
			if err := d.apply(p, as); err != nil {
				return err
			}
		}
	}
	if !done {
		p.printDeclared(d)
	}
	return nil
}

func (p *proc) inFunction() bool { return len(p.frames) > 0 && p.sourced > 0 }

// declared turns "declare $x" into what x says.
func (p *proc) declared(as *syntax.Assign) ([]*syntax.Assign, error) {
	if as.Name != nil {
		return []*syntax.Assign{as}, nil
	}
	values, err := p.fieldsOf(as.Value)
	if err != nil {
		return nil, err
	}
	var out []*syntax.Assign
	for _, s := range values {
		name, value, ok := strings.Cut(s, "=")
		a := &syntax.Assign{Naked: !ok, Name: &syntax.Lit{Value: name}}
		if ok {
			a.Value = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: value}}}
		}
		out = append(out, a)
	}
	return out, nil
}

type declaration struct {
	local, exported, unexport, readonly, print, functions, integer bool
	kind                                                           string
}

func (d *declaration) option(p *proc, opt string) error {
	for _, r := range opt[1:] {
		switch {
		case r == 'x' && opt[0] == '+', r == 'n' && d.exported:
			d.unexport = true
		case r == 'x':
			d.exported = true
		case r == 'r':
			d.readonly = true
		case r == 'g':
			d.local = false
		case r == 'p':
			d.print = true
		case r == 'f' || r == 'F':
			d.functions = true
		case r == 'a' || r == 'A':
			d.kind = "-" + string(r)
		case r == 'i':
			d.integer = true
		default:
			return p.complain("declare: -%c: invalid option", r)
		}
	}
	return nil
}

func (d *declaration) apply(p *proc, as *syntax.Assign) error {
	name := as.Name.Value
	if !validName(name) {
		return p.complain("%s: not a valid identifier", clip(name))
	}
	if d.functions {
		return nil
	}
	// The value is computed before the local variable hides the outer one: local x=$x.
	var value string
	if !as.Naked && as.Array == nil {
		var err error
		if value, err = p.literal(as.Value); err != nil {
			return err
		}
	}
	if d.local {
		if err := p.localise(name); err != nil {
			return err
		}
	}
	var err error
	switch {
	case as.Naked:
	case as.Array != nil:
		err = p.assignArray(name, as, d.kind)
	case as.Append:
		old, _ := p.get(name)
		err = p.set(name, old+value)
	default:
		err = p.set(name, value)
	}
	if err != nil {
		return err
	}
	return p.update(name, func(v *variable) {
		switch {
		case d.kind == "-A" && v.assoc == nil:
			v.assoc = map[string]string{}
		case d.kind == "-a" && v.list == nil:
			v.list = map[int]string{}
		}
		v.exported = (v.exported || d.exported) && !d.unexport
		v.readonly = v.readonly || d.readonly
	})
}

func (p *proc) printDeclared(d *declaration) {
	if d.functions {
		for _, name := range slices.Sorted(maps.Keys(p.funcs)) {
			fmt.Fprintf(p.stdout(), "declare -f %s\n", name)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.vars)) {
		v := p.vars[name]
		if v.isArray() || !v.set || d.exported && !v.exported || d.readonly && !v.readonly {
			continue
		}
		flags := "--"
		if v.exported {
			flags = "-x"
		}
		fmt.Fprintf(p.stdout(), "declare %s %s=\"%s\"\n", flags, name, v.str)
	}
}
