package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// builtins are the commands of the shell itself. They return a status, and an error for what ends more than the command.
var builtins map[string]func(p *proc, args []string) (int, error)

func init() {
	builtins = map[string]func(*proc, []string) (int, error){
		":": func(*proc, []string) (int, error) { return 0, nil }, "true": func(*proc, []string) (int, error) { return 0, nil },
		"false": func(*proc, []string) (int, error) { return 1, nil },
		"cd":    builtinCd, "pwd": builtinPwd, "echo": builtinEcho, "printf": builtinPrintf, "read": builtinRead,
		"mapfile": builtinMapfile, "readarray": builtinMapfile,
		"exit": builtinExit, "logout": builtinExit, "return": builtinReturn, "break": builtinBreak, "continue": builtinBreak,
		"set": builtinSet, "shift": builtinShift, "unset": builtinUnset, "eval": builtinEval, "source": builtinSource, ".": builtinSource,
		"exec": builtinExec, "command": builtinCommand, "builtin": builtinBuiltin, "type": builtinType, "hash": ignored,
		"test": builtinTest, "[": builtinTest, "trap": builtinTrap, "wait": builtinWait, "jobs": ignored, "umask": builtinUmask,
		"getopts": builtinGetopts, "shopt": ignored, "alias": ignored, "unalias": ignored, "ulimit": builtinUlimit,
		"history": ignored, "disown": ignored, "bind": ignored, "times": ignored, "kill": builtinKill,
	}
}

func ignored(*proc, []string) (int, error) { return 0, nil }

func (p *proc) failf(status int, format string, args ...any) (int, error) {
	p.errf(p.name+": "+format, args...)
	return status, nil
}

func builtinCd(p *proc, args []string) (int, error) {
	dir := p.getOr("HOME", "/")
	args = slices.DeleteFunc(args[1:], func(s string) bool { return s == "-P" || s == "-L" || s == "--" })
	if len(args) > 1 {
		return p.failf(1, "cd: too many arguments")
	}
	if len(args) == 1 {
		dir = args[0]
	}
	if dir == "-" {
		dir = p.getOr("OLDPWD", p.dir)
		fmt.Fprintln(p.stdout(), dir)
	}
	info, err := p.view().Stat(p.abs(dir))
	switch {
	case err != nil:
		return p.failf(1, "cd: %s: %v", clip(dir), errors.Unwrap(err))
	case !info.IsDir():
		return p.failf(1, "cd: %s: %v", clip(dir), vfs.ErrNotDir)
	case !p.view().Access(p.abs(dir), 1):
		return p.failf(1, "cd: %s: %v", clip(dir), vfs.ErrPermission)
	}
	real, err := p.view().RealPath(p.abs(dir))
	if err != nil {
		return p.failf(1, "cd: %s: %v", clip(dir), errors.Unwrap(err))
	}
	if err := p.set("OLDPWD", p.dir); err != nil {
		return 1, err
	}
	p.dir = real
	return 0, p.set("PWD", real)
}

func builtinPwd(p *proc, _ []string) (int, error) {
	return outln(p, p.dir)
}

func outln(p *proc, s string) (int, error) {
	if _, err := fmt.Fprintln(p.stdout(), s); err != nil {
		return 1, p.b().err()
	}
	return 0, nil
}

func builtinExit(p *proc, args []string) (int, error) {
	return statusArg(p, args), &exiting{}
}

func statusArg(p *proc, args []string) int {
	if len(args) < 2 {
		return p.status
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		p.errf("%s: %s: %s: numeric argument required", p.name, args[0], clip(args[1]))
		return 2
	}
	return n & 0xff
}

func builtinReturn(p *proc, args []string) (int, error) {
	if p.sourced == 0 {
		return p.failf(1, "return: can only `return' from a function or sourced script")
	}
	return statusArg(p, args), &returning{}
}

func builtinBreak(p *proc, args []string) (int, error) {
	if p.loops == 0 {
		return p.failf(0, "%s: only meaningful in a loop", args[0])
	}
	n := 1
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	n = min(max(n, 1), p.loops)
	if args[0] == "break" {
		return 0, &breaking{n}
	}
	return 0, &resuming{n}
}

func (p *proc) optionFlag(r byte) *bool {
	switch r {
	case 'e':
		return &p.opt.errexit
	case 'u':
		return &p.opt.nounset
	case 'x':
		return &p.opt.xtrace
	case 'f':
		return &p.opt.noglob
	case 'a':
		return &p.opt.allexport
	case 'C':
		return &p.opt.noclobber
	case 'n':
		return &p.opt.noexec
	}
	return nil
}

func (p *proc) flags() string {
	s := ""
	for _, r := range []byte("aefuxC") {
		if *p.optionFlag(r) {
			s += string(rune(r))
		}
	}
	return s
}

var longOptions = map[string]byte{"errexit": 'e', "nounset": 'u', "xtrace": 'x', "noglob": 'f', "allexport": 'a', "noclobber": 'C'}

func (p *proc) setOptions(flags string) error {
	if flags == "" {
		return nil
	}
	for _, r := range []byte(flags[1:]) {
		if o := p.optionFlag(r); o != nil {
			*o = flags[0] == '-'
		} else if !strings.ContainsRune("hmBEHTlisvb", rune(r)) {
			return p.complain("-%c: invalid option", r)
		}
	}
	return nil
}

func builtinSet(p *proc, args []string) (int, error) {
	args = args[1:]
	if len(args) == 0 {
		for _, name := range slices.Sorted(maps.Keys(p.vars)) {
			if v := p.vars[name]; v.set && !v.isArray() {
				fmt.Fprintf(p.stdout(), "%s=%s\n", name, quoteWord(v.str))
			}
		}
		return 0, nil
	}
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		flag := args[0]
		if args = args[1:]; flag == "--" {
			p.params = slices.Clone(args)
			return 0, nil
		}
		if i := strings.IndexByte(flag, 'o'); i > 0 {
			flag = flag[:i] + flag[i+1:]
			if len(args) == 0 {
				continue
			}
			name := args[0]
			args = args[1:]
			switch r, ok := longOptions[name]; {
			case name == "pipefail":
				p.opt.pipefail = flag[0] == '-'
			case ok:
				*p.optionFlag(r) = flag[0] == '-'
			}
		}
		if err := p.setOptions(flag); err != nil {
			return 2, err
		}
	}
	if len(args) > 0 {
		p.params = slices.Clone(args)
	}
	return 0, nil
}

func builtinShift(p *proc, args []string) (int, error) {
	n := 1
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	if n < 0 || n > len(p.params) {
		return 1, nil
	}
	p.params = p.params[n:]
	return 0, nil
}

func builtinUnset(p *proc, args []string) (int, error) {
	functions := false
	for _, name := range args[1:] {
		switch {
		case name == "-f":
			functions = true
		case name == "-v":
		case functions:
			delete(p.funcs, name)
		case strings.HasSuffix(name, "]") && strings.Contains(name, "["):
			base, key, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
			if v := p.vars[base]; v != nil && v.isArray() {
				n, _ := strconv.Atoi(key)
				if err := p.update(base, func(v *variable) { delete(v.list, n); delete(v.assoc, key) }); err != nil {
					return 1, err
				}
			}
		default:
			if p.vars[name] == nil {
				delete(p.funcs, name)
			}
			if err := p.unset(name); err != nil {
				return 1, err
			}
		}
	}
	return 0, nil
}

func builtinEval(p *proc, args []string) (int, error) {
	p.status = 0
	err := p.eval(strings.Join(args[1:], " "), "eval")
	return p.status, err
}

func builtinSource(p *proc, args []string) (int, error) {
	if len(args) < 2 {
		return p.failf(2, "%s: filename argument required", args[0])
	}
	file := p.abs(args[1])
	if !strings.Contains(args[1], "/") {
		if found, err := p.find(args[1]); err == nil {
			file = found
		}
	}
	data, err := p.view().ReadFile(file)
	if err != nil {
		return p.failf(1, "%s: %v", clip(args[1]), errors.Unwrap(err))
	}
	params := p.params
	if len(args) > 2 {
		p.params = args[2:]
	}
	p.sourced++
	p.status = 0
	err = p.eval(string(data), args[1])
	p.sourced--
	if len(args) > 2 {
		p.params = params
	}
	var ret *returning
	if errors.As(err, &ret) {
		err = nil
	}
	return p.status, err
}

func builtinExec(p *proc, args []string) (int, error) {
	if len(args) < 2 {
		return 0, nil
	}
	if err := p.exec(args[1:]); err != nil {
		return p.status, err
	}
	return p.status, &exiting{}
}

func builtinCommand(p *proc, args []string) (int, error) {
	args = args[1:]
	show := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		show = show || strings.ContainsAny(args[0], "vV")
		args = args[1:]
	}
	if len(args) == 0 {
		return 0, nil
	}
	if !show {
		if do, ok := builtins[args[0]]; ok {
			return do(p, args)
		}
		err := p.exec(args)
		return p.status, err
	}
	status := 0
	for _, name := range args {
		_, isFunc := p.funcs[name]
		_, isBuiltin := builtins[name]
		if isFunc || isBuiltin {
			fmt.Fprintln(p.stdout(), name)
		} else if file, err := p.find(name); err == nil {
			fmt.Fprintln(p.stdout(), file)
		} else {
			status = 1
		}
	}
	return status, nil
}

func builtinBuiltin(p *proc, args []string) (int, error) {
	if len(args) < 2 {
		return 0, nil
	}
	do, ok := builtins[args[1]]
	if !ok {
		return p.failf(1, "builtin: %s: not a shell builtin", clip(args[1]))
	}
	return do(p, args[1:])
}

func builtinType(p *proc, args []string) (int, error) {
	status, short := 0, false
	for _, name := range args[1:] {
		if strings.HasPrefix(name, "-") {
			short = short || strings.ContainsAny(name, "tP")
			continue
		}
		kind, text := "", ""
		if _, ok := p.funcs[name]; ok {
			kind, text = "function", name+" is a function"
		} else if _, ok := builtins[name]; ok {
			kind, text = "builtin", name+" is a shell builtin"
		} else if file, err := p.find(name); err == nil {
			kind, text = "file", name+" is "+file
		} else {
			status = 1
			if !short {
				p.errf("%s: type: %s: not found", p.name, clip(name))
			}
			continue
		}
		if short {
			text = kind
		}
		fmt.Fprintln(p.stdout(), text)
	}
	return status, nil
}

func builtinTrap(p *proc, args []string) (int, error) {
	args = slices.DeleteFunc(args[1:], func(s string) bool { return s == "--" })
	if len(args) == 0 || args[0] == "-p" {
		for _, sig := range slices.Sorted(maps.Keys(p.traps)) {
			fmt.Fprintf(p.stdout(), "trap -- %s %s\n", quoteWord(p.traps[sig]), sig)
		}
		return 0, nil
	}
	if args[0] == "-l" {
		return 0, nil
	}
	action, signals := args[0], args[1:]
	if len(signals) == 0 {
		action, signals = "-", args
	}
	for _, sig := range signals {
		sig = strings.TrimPrefix(strings.ToUpper(sig), "SIG")
		if sig == "0" {
			sig = "EXIT"
		}
		delete(p.traps, sig)
		// Other signals never come: a machine has none.
		if action != "-" && (sig == "EXIT" || sig == "ERR") {
			if p.traps == nil {
				p.traps = map[string]string{}
			}
			p.traps[sig] = action
		}
	}
	return 0, nil
}

func builtinWait(p *proc, args []string) (int, error) {
	status := 0
	var pids []int
	for _, a := range args[1:] {
		pid, _ := strconv.Atoi(strings.TrimPrefix(a, "%"))
		if p.jobs[pid] == nil {
			return p.failf(127, "wait: pid %s is not a child of this shell", clip(a))
		}
		pids = append(pids, pid)
	}
	if len(args) < 2 {
		pids = slices.Collect(maps.Keys(p.jobs))
	}
	for _, pid := range pids {
		if err := p.wait(p.jobs[pid]); err != nil {
			return 1, err
		}
		if status = p.jobs[pid].status; len(args) < 2 {
			status = 0
		}
		delete(p.jobs, pid)
	}
	return status, nil
}

func builtinKill(p *proc, args []string) (int, error) {
	if len(args) > 1 && args[1] == "-l" {
		return outln(p, "HUP INT QUIT KILL TERM")
	}
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return p.failf(1, "kill: (%s) - Operation not permitted", clip(a))
		}
	}
	return p.failf(2, "kill: usage: kill [-s sigspec] pid")
}

func builtinUmask(p *proc, args []string) (int, error) {
	if len(args) < 2 || args[1] == "-S" || args[1] == "-p" {
		fmt.Fprintf(p.stdout(), "%04o\n", p.umask)
		return 0, nil
	}
	n, err := strconv.ParseUint(args[1], 8, 32)
	if err != nil || n > 0o777 {
		return p.failf(1, "umask: %s: octal number out of range", clip(args[1]))
	}
	p.umask = int(n)
	return 0, nil
}

func builtinUlimit(p *proc, args []string) (int, error) {
	if len(args) > 2 {
		return 0, nil
	}
	return outln(p, "unlimited")
}

func builtinGetopts(p *proc, args []string) (int, error) {
	if len(args) < 3 {
		return p.failf(2, "getopts: usage: getopts optstring name [arg ...]")
	}
	params := p.params
	if len(args) > 3 {
		params = args[3:]
	}
	at, _ := strconv.Atoi(p.getOr("OPTIND", "1"))
	at = max(at, 1)
	done := func(name, optarg string, next int, status int) (int, error) {
		for k, v := range map[string]string{args[2]: name, "OPTARG": optarg, "OPTIND": strconv.Itoa(next)} {
			if err := p.set(k, v); err != nil {
				return 1, err
			}
		}
		return status, nil
	}
	if at > len(params) || len(params[at-1]) < 2 || params[at-1][0] != '-' {
		return done("?", "", at, 1)
	}
	arg := params[at-1]
	if arg == "--" {
		return done("?", "", at+1, 1)
	}
	p.optind = max(p.optind, 1)
	if p.optind >= len(arg) {
		p.optind = 1
	}
	opt := arg[p.optind : p.optind+1]
	p.optind++
	i := strings.Index(strings.TrimPrefix(args[1], ":"), opt)
	spec := strings.TrimPrefix(args[1], ":")
	next := at
	if p.optind >= len(arg) {
		next, p.optind = at+1, 1
	}
	switch {
	case i < 0 || opt == ":":
		p.errf("%s: illegal option -- %s", p.name, opt)
		return done("?", opt, next, 0)
	case i+1 < len(spec) && spec[i+1] == ':':
		value := ""
		if next == at {
			value, next, p.optind = arg[p.optind:], at+1, 1
		} else if next <= len(params) {
			value = params[next-1]
			next++
		} else {
			p.errf("%s: option requires an argument -- %s", p.name, opt)
			return done("?", opt, next, 0)
		}
		return done(opt, value, next, 0)
	}
	return done(opt, "", next, 0)
}
