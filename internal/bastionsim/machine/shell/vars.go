package shell

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

type kind byte

const (
	scalar kind = iota
	indexed
	associative
	nameref
)

type variable struct {
	kind     kind
	set      bool
	str      string            // of a scalar, or the name that a reference refers to
	elems    map[string]string // of an array, by subscript; never changed, because copies share it
	exported bool
	readonly bool
}

func (v variable) array() bool { return v.kind == indexed || v.kind == associative }

func (v variable) size() int64 {
	n := int64(64 + len(v.str))
	for k, s := range v.elems {
		n += int64(len(k)+len(s)) + 64
	}
	return n
}

// end returns the index after the last element.
func (v variable) end() int64 {
	n := int64(0)
	for k := range v.elems {
		i, _ := strconv.ParseInt(k, 10, 64) // the subscripts of an indexed array are numbers
		n = max(n, i+1)
	}
	return n
}

// elements returns the subscripts and values of an array. A scalar is its own first element.
func (v variable) elements() (keys, values []string) {
	if !v.array() {
		if v.set {
			return []string{"0"}, []string{v.str}
		}
		return nil, nil
	}
	keys = slices.SortedFunc(maps.Keys(v.elems), func(a, b string) int {
		if v.kind == indexed && len(a) != len(b) {
			return cmp.Compare(len(a), len(b))
		}
		return cmp.Compare(a, b)
	})
	for _, k := range keys {
		values = append(values, v.elems[k])
	}
	return keys, values
}

// first returns the value of $name.
func (v variable) first() (string, bool) {
	if v.array() {
		s, ok := v.elems["0"]
		return s, ok
	}
	return v.str, v.set
}

func listOf(items []string) variable {
	v := variable{kind: indexed, set: true, elems: map[string]string{}}
	for i, text := range items {
		v.elems[strconv.Itoa(i)] = text
	}
	return v
}

// own makes a scalar an array, and copies the elements, so that the caller can change them.
func (v *variable) own() {
	if v.array() {
		v.elems = maps.Clone(v.elems)
	} else {
		keys, values := v.elements()
		*v = variable{kind: indexed, elems: map[string]string{}, exported: v.exported, readonly: v.readonly}
		for i, key := range keys {
			v.elems[key] = values[i]
		}
	}
	v.set = true
}

// resolve follows references to the name of a variable. It returns "" for circular references.
func (sh *shell) resolve(name string) string {
	for range 10 {
		v := sh.scopeOf(name)[name]
		if v.kind != nameref || v.str == "" {
			return name
		}
		name = v.str
	}
	return ""
}

// get returns a variable, and follows references.
func (sh *shell) get(name string) variable { return sh.raw(sh.resolve(name)) }

// scopeOf returns the innermost scope that has a variable, or nil.
func (sh *shell) scopeOf(name string) map[string]variable {
	for _, scope := range slices.Backward(sh.scopes) {
		if _, ok := scope[name]; ok {
			return scope
		}
	}
	return nil
}

func (sh *shell) raw(name string) variable {
	if scope := sh.scopeOf(name); scope != nil {
		return scope[name]
	}
	switch fn := dynamic[name]; {
	case fn != nil:
		return variable{set: true, str: fn(sh)}
	case name == "DIRSTACK":
		return listOf(append([]string{sh.dir}, sh.dirs...))
	case name == "PIPESTATUS":
		var list []string
		for _, status := range sh.pipeStatus {
			list = append(list, strconv.Itoa(status))
		}
		return listOf(list)
	}
	return variable{}
}

func (sh *shell) value(name string) string {
	s, _ := sh.get(name).first()
	return s
}

// dynamic are the variables that the shell computes.
var dynamic map[string]func(*shell) string

func init() {
	number := func(fn func(*shell) int64) func(*shell) string {
		return func(sh *shell) string { return strconv.FormatInt(fn(sh), 10) }
	}
	text := func(s string) func(*shell) string { return func(*shell) string { return s } }
	uid := number(func(sh *shell) int64 { return int64(sh.user.UID) })
	dynamic = map[string]func(*shell) string{
		"RANDOM":        number(func(*shell) int64 { return rand.Int64N(32768) }),
		"SRANDOM":       number(func(*shell) int64 { return rand.Int64N(1 << 32) }),
		"SECONDS":       number(func(sh *shell) int64 { return int64(sh.s.o.Clock.Since(sh.started).Seconds()) }),
		"EPOCHSECONDS":  number(func(sh *shell) int64 { return sh.s.o.Clock.Now().Unix() }),
		"GROUPS":        number(func(sh *shell) int64 { return int64(sh.user.GID) }),
		"BASHPID":       number(func(sh *shell) int64 { return sh.pid }),
		"LINENO":        number(func(sh *shell) int64 { return int64(sh.line) }),
		"BASH_SUBSHELL": number(func(sh *shell) int64 { return int64(sh.level) }),
		"HOSTNAME":      func(sh *shell) string { return sh.s.o.System.Hostname() },
		"FUNCNAME":      func(sh *shell) string { return sh.function },
		"BASH_SOURCE":   func(sh *shell) string { return sh.source },
		"_":             func(sh *shell) string { return sh.lastArg },
		"UID":           uid, "EUID": uid,
		"PPID": text("1"), "SHLVL": text("1"), "OPTIND": text("1"), "IFS": text(" \t\n"), "PS4": text("+ "),
		"HOSTTYPE": text("x86_64"), "OSTYPE": text("linux-gnu"), "MACHTYPE": text("x86_64-gardenlite-linux-gnu"),
		"BASH": text("/usr/bin/bash"), "BASH_VERSION": text("5.2.0(1)-gardenlite"),
	}
}

// locked reports whether a variable cannot be changed.
func (sh *shell) locked(name string) bool {
	return sh.scopeOf(name)[name].readonly || name == "UID" || name == "EUID" || name == "PPID"
}

// assign stores a variable in the scope that has it, or in the outermost one.
func (sh *shell) assign(name string, v variable) {
	scope := sh.scopeOf(name)
	if scope == nil {
		scope = sh.scopes[0]
	}
	sh.store(scope, name, v)
}

func (sh *shell) store(scope map[string]variable, name string, v variable) {
	old, had := scope[name]
	switch {
	case had && old.readonly:
		sh.failf("%s: readonly variable", name)
	case len(v.str) > maxString:
		sh.kill("string")
	case !had && len(scope) >= maxFields:
		sh.kill("memory")
	case len(v.elems) > maxFields:
		sh.kill("fields")
	}
	if !sh.ok() {
		return
	}
	delta := v.size()
	if had {
		delta -= old.size()
	}
	sh.hold(delta)
	scope[name] = v
}

// hold counts bytes that this shell keeps or, if negative, releases.
func (sh *shell) hold(bytes int64) {
	sh.held += bytes
	if err := sh.r.grow(bytes); err != nil {
		sh.fail(err)
		sh.stopErr = cmp.Or(sh.stopErr, err) // ends a job in the background, too, which has another context than the current line
	}
}

// set sets a variable to a string. The variable keeps its attributes.
func (sh *shell) set(name, text string) {
	v, name := sh.target(name)
	if v.array() {
		sh.setElem(name, "0", text)
		return
	}
	v.set, v.str, v.exported = true, text, v.exported || sh.allexport
	if sh.ok() {
		sh.assign(name, v)
	}
}

func (sh *shell) setArray(name string, items []string) {
	if _, name = sh.target(name); sh.ok() {
		sh.assign(name, listOf(items))
	}
}

// target follows references, and returns the variable that an assignment changes, and its name.
func (sh *shell) target(name string) (variable, string) {
	name = sh.resolve(name)
	if !syntax.ValidName(name) {
		sh.failf("`%s': not a valid identifier", name)
	} else if sh.locked(name) {
		sh.failf("%s: readonly variable", name)
	}
	return sh.scopeOf(name)[name], name
}

// setElem sets an element of an array. A scalar becomes an array.
func (sh *shell) setElem(name, sub, text string) {
	v, name := sh.target(name)
	v.own()
	v.elems[sh.subscript(v, sub)] = text
	if sh.step(len(v.elems)/64) == nil && sh.ok() {
		sh.assign(name, v)
	}
}

// subscript returns the key of an element. For an indexed array it is a number; a negative one counts from the end.
func (sh *shell) subscript(v variable, sub string) string {
	if v.kind == associative {
		return sub
	}
	n := sh.arithmText(sub)
	if n < 0 {
		n += v.end()
	}
	if n < 0 {
		sh.failf("%s: bad array subscript", sub)
	}
	return strconv.FormatInt(n, 10)
}

// unset removes a variable. A local variable of the current function stays local.
func (sh *shell) unset(name string) {
	scope := sh.scopeOf(name)
	v, had := scope[name]
	switch {
	case sh.locked(name):
		sh.failf("%s: cannot unset: readonly variable", name)
	case had && sh.local(name):
		sh.store(scope, name, variable{})
	case had:
		sh.hold(-v.size())
		delete(scope, name)
	}
}

// local reports whether a variable is local to the current function.
func (sh *shell) local(name string) bool {
	_, ok := sh.scopes[len(sh.scopes)-1][name]
	return ok && len(sh.scopes) > 1
}

// unsetElem removes an element, or all elements.
func (sh *shell) unsetElem(name, sub string) {
	v, name := sh.target(name)
	scope := sh.scopeOf(name)
	switch {
	case scope == nil || !sh.ok() || sub == "":
		return
	case sub == "@" || sub == "*":
		v.elems = map[string]string{}
	case v.array():
		v.own()
		delete(v.elems, sh.subscript(v, sub))
	case sh.arithmText(sub) == 0:
		sh.unset(name)
		return
	default:
		sh.failf("%s: not an array variable", name)
	}
	sh.store(scope, name, v)
}

func (sh *shell) environ() []string {
	out := []string{}
	for _, name := range sh.namesWith("") {
		v := sh.scopeOf(name)[name]
		if s, ok := v.first(); ok && v.exported {
			out = append(out, name+"="+s)
		}
	}
	return out
}

func (sh *shell) pushScope() { sh.scopes = append(sh.scopes, map[string]variable{}) }

func (sh *shell) popScope() {
	last := len(sh.scopes) - 1
	for _, v := range sh.scopes[last] {
		sh.hold(-v.size())
	}
	sh.scopes = sh.scopes[:last]
}
