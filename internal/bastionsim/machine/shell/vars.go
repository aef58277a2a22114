package shell

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type kind byte

const (
	scalar kind = iota
	indexed
	associative
	nameref
)

// variable is a value; arrays are shared between copies until one of them changes (owned).
type variable struct {
	kind     kind
	set      bool
	str      string
	list     map[int]string
	assoc    map[string]string
	owned    bool
	exported bool
	readonly bool
	integer  bool
	lower    bool
	upper    bool
}

func (v variable) size() int64 {
	n := int64(64 + len(v.str))
	for _, s := range v.list {
		n += int64(len(s)) + 48
	}
	for k, s := range v.assoc {
		n += int64(len(k)+len(s)) + 64
	}
	return n
}

func (v variable) indexes() []int { return slices.Sorted(maps.Keys(v.list)) }

// end is the index behind the last element.
func (v variable) end() int64 {
	n := int64(0)
	for i := range v.list {
		n = max(n, int64(i)+1)
	}
	return n
}

func (v variable) keys() []string {
	if v.kind == associative {
		return slices.Sorted(maps.Keys(v.assoc))
	}
	out := []string{}
	for _, i := range v.indexes() {
		out = append(out, strconv.Itoa(i))
	}
	if v.kind == scalar && v.set {
		out = append(out, "0")
	}
	return out
}

// values are all elements; a scalar is its own first one.
func (v variable) values() []string {
	var out []string
	switch v.kind {
	case associative:
		for _, k := range v.keys() {
			out = append(out, v.assoc[k])
		}
	case indexed:
		for _, i := range v.indexes() {
			out = append(out, v.list[i])
		}
	default:
		if v.set {
			out = []string{v.str}
		}
	}
	return out
}

// first is what $name is.
func (v variable) first() (string, bool) {
	switch v.kind {
	case indexed:
		s, ok := v.list[0]
		return s, ok
	case associative:
		s, ok := v.assoc["0"]
		return s, ok
	}
	return v.str, v.set
}

// listOf is an array.
func listOf(items []string) variable {
	v := variable{kind: indexed, set: true, list: map[int]string{}}
	for i, text := range items {
		v.list[i] = text
	}
	return v
}

// asList makes an array of a scalar, and lets the caller change the elements.
func (v *variable) asList() {
	if v.kind == scalar || v.kind == nameref {
		v.kind, v.list = indexed, map[int]string{}
		if v.set {
			v.list[0] = v.str
		}
		v.str = ""
	} else if !v.owned {
		v.list, v.assoc = maps.Clone(v.list), maps.Clone(v.assoc)
	}
	v.owned, v.set = true, true
}

// get is a variable, through references.
func (sh *shell) get(name string) variable {
	for range 10 {
		v := sh.raw(name)
		if v.kind != nameref || v.str == "" {
			return v
		}
		name = v.str
	}
	return variable{}
}

// scopeOf is the innermost scope that has a variable, or nil.
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
	if fn := dynamic[name]; fn != nil {
		return variable{set: true, str: fn(sh)}
	}
	switch name {
	case "PIPESTATUS":
		var list []string
		for _, status := range sh.pipeStatus {
			list = append(list, strconv.Itoa(status))
		}
		return listOf(list)
	case "DIRSTACK":
		return listOf(append([]string{sh.dir}, sh.dirs...))
	}
	return variable{}
}

func (sh *shell) value(name string) string {
	s, _ := sh.get(name).first()
	return s
}

// dynamic are variables that the shell has by itself.
var dynamic map[string]func(*shell) string

func init() {
	number := func(fn func(*shell) int64) func(*shell) string {
		return func(sh *shell) string { return strconv.FormatInt(fn(sh), 10) }
	}
	text := func(s string) func(*shell) string { return func(*shell) string { return s } }
	dynamic = map[string]func(*shell) string{
		"RANDOM":        number(func(*shell) int64 { return rand.Int64N(32768) }),
		"SRANDOM":       number(func(*shell) int64 { return rand.Int64N(1 << 32) }),
		"SECONDS":       number(func(sh *shell) int64 { return int64(sh.s.o.Clock.Since(sh.started).Seconds()) }),
		"EPOCHSECONDS":  number(func(sh *shell) int64 { return sh.s.o.Clock.Now().Unix() }),
		"UID":           number(func(sh *shell) int64 { return int64(sh.user.UID) }),
		"EUID":          number(func(sh *shell) int64 { return int64(sh.user.UID) }),
		"GROUPS":        number(func(sh *shell) int64 { return int64(sh.user.GID) }),
		"BASHPID":       number(func(sh *shell) int64 { return sh.pid }),
		"LINENO":        number(func(sh *shell) int64 { return int64(sh.line) }),
		"BASH_SUBSHELL": number(func(sh *shell) int64 { return int64(sh.level) }),
		"HOSTNAME":      func(sh *shell) string { return sh.s.hostname() },
		"FUNCNAME":      func(sh *shell) string { return sh.function },
		"BASH_SOURCE":   func(sh *shell) string { return sh.source },
		"_":             func(sh *shell) string { return sh.lastArg },
		"PPID":          text("1"), "SHLVL": text("1"), "OPTIND": text("1"), "IFS": text(" \t\n"), "PS4": text("+ "),
		"HOSTTYPE": text("x86_64"), "OSTYPE": text("linux-gnu"), "MACHTYPE": text("x86_64-gardenlite-linux-gnu"),
		"BASH": text("/usr/bin/bash"), "BASH_VERSION": text("5.2.0(1)-gardenlite"),
	}
}

// fixedVariables cannot be unset.
var fixedVariables = []string{"UID", "EUID", "PPID"}

// failure is an error of an expansion or a command.
type failure struct {
	msg  string
	code int
	exit bool // the shell ends, as bash does for some errors of expansions
}

func (f *failure) Error() string { return f.msg }

func failf(format string, args ...any) error {
	return &failure{msg: fmt.Sprintf(format, args...), code: 1}
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
	case len(v.str) > sh.r.limits.String:
		sh.kill("string")
	case !had && len(scope) >= sh.r.limits.Fields:
		sh.kill("memory")
	case len(v.list)+len(v.assoc) > sh.r.limits.Fields:
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

// hold counts bytes that this shell keeps (or, if negative, no longer).
func (sh *shell) hold(bytes int64) {
	sh.held += bytes
	sh.fail(sh.r.grow(bytes))
}

// set gives a variable a string, which keeps its attributes.
func (sh *shell) set(name, text string) {
	v, name := sh.target(name)
	if v.kind == indexed || v.kind == associative {
		sh.setElem(name, "0", text)
		return
	}
	v.set, v.str, v.exported = true, sh.convert(v, text), v.exported || sh.allexport
	if sh.ok() {
		sh.assign(name, v)
	}
}

// setArray makes a variable an array.
func (sh *shell) setArray(name string, items []string) {
	if _, name = sh.target(name); sh.ok() {
		sh.assign(name, listOf(items))
	}
}

// target is the variable that an assignment is for, through references.
func (sh *shell) target(name string) (variable, string) {
	for range 10 {
		if !syntax.ValidName(name) {
			sh.failf("`%s': not a valid identifier", name)
		}
		v := sh.scopeOf(name)[name]
		if v.readonly || slices.Contains(fixedVariables, name) {
			sh.failf("%s: readonly variable", name)
		}
		if v.kind != nameref || v.str == "" || !sh.ok() {
			return v, name
		}
		name = v.str
	}
	sh.failf("%s: circular name reference", name)
	return variable{}, name
}

func (sh *shell) convert(v variable, text string) string {
	switch {
	case v.integer:
		return strconv.FormatInt(sh.arithmText(text), 10)
	case v.lower:
		return strings.ToLower(text)
	case v.upper:
		return strings.ToUpper(text)
	}
	return text
}

// setElem sets an element of an array. The variable becomes an array if it is none.
func (sh *shell) setElem(name, index, text string) {
	v, name := sh.target(name)
	text = sh.convert(v, text)
	if !v.owned || v.kind == scalar {
		v.asList()
		sh.assign(name, v)
	}
	if len(v.list)+len(v.assoc) >= sh.r.limits.Fields {
		sh.kill("fields")
	}
	i := 0
	if v.kind == indexed {
		i = sh.arrayIndex(v, index)
	}
	if sh.hold(int64(len(text) + len(index) + 64)); !sh.ok() {
		return
	}
	if v.kind == associative {
		v.assoc[index] = text
	} else {
		v.list[i] = text
	}
}

// arrayIndex is a subscript as a number; negative ones count from the end.
func (sh *shell) arrayIndex(v variable, index string) int {
	n := sh.arithmText(index)
	if n < 0 {
		n += v.end()
	}
	if n < 0 {
		sh.failf("%s: bad array subscript", index)
	}
	return int(n)
}

// unset removes a variable. One of the function that runs stays local to it.
func (sh *shell) unset(name string) {
	scope := sh.scopeOf(name)
	v, had := scope[name]
	switch {
	case v.readonly || slices.Contains(fixedVariables, name):
		sh.failf("%s: cannot unset: readonly variable", name)
	case had && sh.local(name):
		sh.store(scope, name, variable{})
	case had:
		sh.hold(-v.size())
		delete(scope, name)
	}
}

// local says whether a variable is one of the function that runs.
func (sh *shell) local(name string) bool {
	_, ok := sh.scopes[len(sh.scopes)-1][name]
	return ok && len(sh.scopes) > 1
}

// unsetElem removes an element, or all.
func (sh *shell) unsetElem(name, sub string) {
	v, name := sh.target(name)
	scope := sh.scopeOf(name)
	switch {
	case scope == nil || !sh.ok() || sub == "":
		return
	case sub == "@" || sub == "*":
		v.list, v.assoc, v.owned = map[int]string{}, map[string]string{}, true
	case v.kind == scalar && sh.arithmText(sub) == 0:
		sh.unset(name)
		return
	case v.kind == scalar:
		sh.failf("%s: not an array variable", name)
	case v.kind == associative:
		v.asList()
		delete(v.assoc, sub)
	default:
		v.asList()
		delete(v.list, sh.arrayIndex(v, sub))
	}
	sh.store(scope, name, v)
}

// environ are the exported variables.
func (sh *shell) environ() []string {
	all := map[string]string{}
	for _, scope := range sh.scopes {
		for name, v := range scope {
			delete(all, name)
			if s, ok := v.first(); ok && v.exported {
				all[name] = s
			}
		}
	}
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
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
