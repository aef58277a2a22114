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

func (v variable) keys() []string {
	if v.kind == associative {
		return slices.Sorted(maps.Keys(v.assoc))
	}
	var out []string
	for _, i := range v.indexes() {
		out = append(out, strconv.Itoa(i))
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

func (sh *shell) raw(name string) variable {
	for _, scope := range slices.Backward(sh.scopes) {
		if v, ok := scope[name]; ok {
			return v
		}
	}
	if fn := dynamic[name]; fn != nil {
		return variable{set: true, str: fn(sh)}
	}
	return variable{}
}

func (sh *shell) value(name string) string {
	s, _ := sh.get(name).first()
	return s
}

// dynamic are variables that nobody has set.
var dynamic map[string]func(*shell) string

func init() {
	number := func(fn func(*shell) int64) func(*shell) string {
		return func(sh *shell) string { return strconv.FormatInt(fn(sh), 10) }
	}
	dynamic = map[string]func(*shell) string{
		"RANDOM":        number(func(*shell) int64 { return rand.Int64N(32768) }),
		"SRANDOM":       number(func(*shell) int64 { return rand.Int64N(1 << 32) }),
		"SECONDS":       number(func(sh *shell) int64 { return int64(sh.s.o.Clock.Since(sh.started).Seconds()) }),
		"EPOCHSECONDS":  number(func(sh *shell) int64 { return sh.s.o.Clock.Now().Unix() }),
		"UID":           number(func(sh *shell) int64 { return int64(sh.user.UID) }),
		"EUID":          number(func(sh *shell) int64 { return int64(sh.user.UID) }),
		"GROUPS":        number(func(sh *shell) int64 { return int64(sh.user.GID) }),
		"PPID":          number(func(*shell) int64 { return 1 }),
		"BASHPID":       number(func(sh *shell) int64 { return sh.pid }),
		"LINENO":        number(func(sh *shell) int64 { return int64(sh.line) }),
		"SHLVL":         number(func(*shell) int64 { return 1 }),
		"BASH_SUBSHELL": number(func(sh *shell) int64 { return int64(sh.level) }),
		"HOSTNAME":      func(sh *shell) string { return sh.s.hostname() },
		"HOSTTYPE":      func(*shell) string { return "x86_64" },
		"OSTYPE":        func(*shell) string { return "linux-gnu" },
		"MACHTYPE":      func(*shell) string { return "x86_64-gardenlite-linux-gnu" },
		"BASH":          func(*shell) string { return "/usr/bin/bash" },
		"BASH_VERSION":  func(*shell) string { return "5.2.0(1)-gardenlite" },
		"FUNCNAME":      func(sh *shell) string { return sh.function },
		"BASH_SOURCE":   func(sh *shell) string { return sh.source },
		"_":             func(sh *shell) string { return sh.lastArg },
		"IFS":           func(*shell) string { return " \t\n" },
		"OPTIND":        func(*shell) string { return "1" },
		"PS4":           func(*shell) string { return "+ " },
	}
}

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
func (sh *shell) assign(name string, v variable) error {
	scope := sh.scopes[0]
	for _, s := range slices.Backward(sh.scopes) {
		if _, ok := s[name]; ok {
			scope = s
			break
		}
	}
	return sh.store(scope, name, v)
}

func (sh *shell) store(scope map[string]variable, name string, v variable) error {
	old, had := scope[name]
	if had && old.readonly {
		return failf("%s: readonly variable", name)
	}
	if len(v.str) > sh.r.limits.String {
		return sh.r.kill("string")
	}
	delta := v.size()
	if had {
		delta -= old.size()
	} else if len(scope) >= sh.r.limits.Fields {
		return sh.r.kill("memory")
	}
	if err := sh.r.grow(delta); err != nil {
		return err
	}
	sh.held += delta
	scope[name] = v
	return nil
}

// set gives a variable a string, which keeps its attributes.
func (sh *shell) set(name, text string) error {
	v, name, err := sh.target(name)
	if err != nil {
		return err
	}
	switch v.kind {
	case indexed, associative:
		return sh.setElem(name, "0", text)
	}
	if text, err = sh.convert(v, text); err != nil {
		return err
	}
	v.set, v.str = true, text
	if sh.allexport {
		v.exported = true
	}
	return sh.assign(name, v)
}

// target is the variable that an assignment is for, through references.
func (sh *shell) target(name string) (variable, string, error) {
	if !syntax.ValidName(name) {
		return variable{}, name, failf("%s: not a valid identifier", name)
	}
	for range 10 {
		v := variable{}
		for _, scope := range slices.Backward(sh.scopes) {
			if found, ok := scope[name]; ok {
				v = found
				break
			}
		}
		if v.readonly {
			return v, name, failf("%s: readonly variable", name)
		}
		if v.kind != nameref || v.str == "" {
			return v, name, nil
		}
		name = v.str
	}
	return variable{}, name, failf("%s: circular name reference", name)
}

func (sh *shell) convert(v variable, text string) (string, error) {
	switch {
	case v.integer:
		n, err := sh.arithmText(text)
		return strconv.FormatInt(n, 10), err
	case v.lower:
		return strings.ToLower(text), nil
	case v.upper:
		return strings.ToUpper(text), nil
	}
	return text, nil
}

// setElem sets an element of an array. The variable becomes an array if it is none.
func (sh *shell) setElem(name, index, text string) error {
	v, name, err := sh.target(name)
	if err != nil {
		return err
	}
	if text, err = sh.convert(v, text); err != nil {
		return err
	}
	if v.kind == scalar {
		v.kind, v.owned, v.list = indexed, true, map[int]string{}
		if v.set {
			v.list[0] = v.str
		}
		v.str, v.set = "", true
		if err := sh.assign(name, v); err != nil {
			return err
		}
	}
	if !v.owned {
		v.list, v.assoc, v.owned = maps.Clone(v.list), maps.Clone(v.assoc), true
	}
	if len(v.list)+len(v.assoc) >= sh.r.limits.Fields {
		return sh.r.kill("fields")
	}
	delta := int64(len(text) + len(index) + 64)
	if err := sh.r.grow(delta); err != nil {
		return err
	}
	sh.held += delta
	if v.kind == associative {
		v.assoc[index] = text
	} else {
		i, err := sh.arrayIndex(v, index)
		if err != nil {
			return err
		}
		v.list[i] = text
	}
	for _, scope := range slices.Backward(sh.scopes) {
		if _, ok := scope[name]; ok {
			scope[name] = v // the size was counted above
			break
		}
	}
	return nil
}

// arrayIndex is a subscript as a number; negative ones count from the end.
func (sh *shell) arrayIndex(v variable, index string) (int, error) {
	n, err := sh.arithmText(index)
	if err != nil {
		return 0, err
	}
	if n < 0 && len(v.list) > 0 {
		all := v.indexes()
		n += int64(all[len(all)-1]) + 1
	}
	if n < 0 {
		return 0, failf("%s: bad array subscript", index)
	}
	return int(n), nil
}

func (sh *shell) unset(name string) error {
	for _, scope := range slices.Backward(sh.scopes) {
		if v, ok := scope[name]; ok {
			if v.readonly {
				return failf("unset: %s: cannot unset: readonly variable", name)
			}
			delta := v.size()
			sh.held -= delta
			delete(scope, name)
			return sh.r.grow(-delta)
		}
	}
	return nil
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
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}

func (sh *shell) pushScope() { sh.scopes = append(sh.scopes, map[string]variable{}) }

func (sh *shell) popScope() {
	last := sh.scopes[len(sh.scopes)-1]
	for _, v := range last {
		delta := v.size()
		sh.held -= delta
		_ = sh.r.grow(-delta) // less is never too much
	}
	sh.scopes = sh.scopes[:len(sh.scopes)-1]
}
