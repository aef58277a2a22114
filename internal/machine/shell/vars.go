package shell

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variable is a shell variable: a string, an indexed array (sparse, so that an index costs nothing) or an associative one.
type variable struct {
	str      string
	list     map[int]string
	assoc    map[string]string
	set      bool
	exported bool
	readonly bool
}

const variableCost = 64

func (v *variable) size() int {
	n := variableCost + len(v.str)
	for _, s := range v.list {
		n += variableCost + len(s)
	}
	for k, s := range v.assoc {
		n += variableCost + len(k) + len(s)
	}
	return n
}

func (v *variable) clone() *variable {
	c := *v
	c.list, c.assoc = maps.Clone(v.list), maps.Clone(v.assoc)
	return &c
}

func (v *variable) isArray() bool { return v.list != nil || v.assoc != nil }

func (v *variable) values() []string {
	switch {
	case v.list != nil:
		var all []string
		for _, i := range slices.Sorted(maps.Keys(v.list)) {
			all = append(all, v.list[i])
		}
		return all
	case v.assoc != nil:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(v.assoc)) {
			all = append(all, v.assoc[k])
		}
		return all
	case v.set:
		return []string{v.str}
	}
	return nil
}

func (v *variable) keys() []string {
	if v.assoc != nil {
		return slices.Sorted(maps.Keys(v.assoc))
	}
	var all []string
	for _, i := range slices.Sorted(maps.Keys(v.list)) {
		all = append(all, strconv.Itoa(i))
	}
	if v.list == nil && v.set {
		all = []string{"0"}
	}
	return all
}

// scalar is the value that a name without index has.
func (v *variable) scalar() (string, bool) {
	switch {
	case v.list != nil:
		s, ok := v.list[0]
		return s, ok
	case v.assoc != nil:
		s, ok := v.assoc["0"]
		return s, ok
	}
	return v.str, v.set
}

// get looks a variable or a parameter up.
func (p *proc) get(name string) (string, bool) {
	if s, ok := p.special(name); ok {
		return s, true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n == 0 {
			return p.name, true
		}
		if n > 0 && n <= len(p.params) {
			return p.params[n-1], true
		}
		return "", false
	}
	if v := p.vars[name]; v != nil {
		return v.scalar()
	}
	return "", false
}

func (p *proc) special(name string) (string, bool) {
	switch name {
	case "?":
		return strconv.Itoa(p.status), true
	case "#":
		return strconv.Itoa(len(p.params)), true
	case "$":
		return strconv.Itoa(p.shellPID), true
	case "BASHPID":
		return strconv.Itoa(p.pid), true
	case "PPID":
		return "1", true
	case "!":
		if p.lastJob == 0 {
			return "", false
		}
		return strconv.Itoa(p.lastJob), true
	case "-":
		return p.flags(), true
	case "RANDOM":
		return strconv.Itoa(rand.IntN(32768)), true
	case "SECONDS":
		return strconv.Itoa(int(p.s.cfg.Clock.Since(p.s.started) / time.Second)), true
	case "EPOCHSECONDS":
		return strconv.FormatInt(p.s.cfg.Clock.Now().Unix(), 10), true
	case "UID", "EUID":
		return strconv.Itoa(p.cred.UID), true
	}
	return "", false
}

func (p *proc) getOr(name, otherwise string) string {
	if s, ok := p.get(name); ok {
		return s
	}
	return otherwise
}

// set gives a variable a string.
func (p *proc) set(name, value string) error {
	return p.update(name, func(v *variable) {
		switch {
		case v.list != nil:
			v.list[0] = value
		case v.assoc != nil:
			v.assoc["0"] = value
		default:
			v.str, v.set = value, true
		}
		v.exported = v.exported || p.opt.allexport
	})
}

// update changes a variable and accounts for what it takes then.
func (p *proc) update(name string, change func(*variable)) error {
	if !validName(name) {
		return p.complain("%s: not a valid identifier", name)
	}
	if _, fixed := p.special(name); fixed && name != "RANDOM" && name != "SECONDS" {
		return p.complain("%s: readonly variable", name)
	}
	v := p.vars[name]
	if v == nil {
		v = &variable{}
	} else if v.readonly {
		return p.complain("%s: readonly variable", name)
	}
	before := 0
	if p.vars[name] != nil {
		before = v.size()
	}
	change(v)
	after := v.size()
	if err := p.b().text(len(v.str)); err != nil {
		return err
	}
	p.vars[name] = v
	p.held += after - before + len(name)*b2i(before == 0)
	return p.b().charge(after - before + len(name)*b2i(before == 0))
}

func (p *proc) unset(name string) error {
	v := p.vars[name]
	if v == nil {
		return nil
	}
	if v.readonly {
		return p.complain("unset: %s: cannot unset: readonly variable", name)
	}
	delete(p.vars, name)
	p.held -= v.size() + len(name)
	return p.b().charge(-v.size() - len(name))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// environ is what a program that is started now gets.
func (p *proc) environ() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p.vars)) {
		if v := p.vars[name]; v.exported && !v.isArray() && v.set {
			env = append(env, name+"="+v.str)
		}
	}
	return env
}

// localise makes name local to the running function; the function's end brings the old one back.
func (p *proc) localise(name string) error {
	frame := p.frames[len(p.frames)-1]
	if _, already := frame[name]; already {
		return nil
	}
	frame[name] = p.vars[name]
	if old := p.vars[name]; old != nil && old.readonly {
		return p.complain("local: %s: readonly variable", name)
	}
	delete(p.vars, name)
	return nil
}

func (p *proc) leaveFrame() {
	frame := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	for name, old := range frame {
		if v := p.vars[name]; v != nil {
			n := v.size() + len(name)
			p.held -= n
			_ = p.b().charge(-n)
		}
		if delete(p.vars, name); old != nil {
			p.vars[name] = old
		}
	}
}

func validName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// complain prints an error of the shell itself. It is not fatal: the caller gives status 1.
func (p *proc) complain(format string, args ...any) error {
	return &complaint{fmt.Sprintf(format, args...)}
}

// complaint is an error that makes the command fail and not the script.
type complaint struct{ text string }

func (c *complaint) Error() string { return c.text }

func ifsOf(p *proc) string {
	if v := p.vars["IFS"]; v != nil && v.set {
		return v.str
	}
	return " \t\n"
}

func joinIFS(p *proc, list []string) string {
	ifs := ifsOf(p)
	if ifs == "" {
		return strings.Join(list, "")
	}
	return strings.Join(list, ifs[:1])
}
