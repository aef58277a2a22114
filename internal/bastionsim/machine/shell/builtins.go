package shell

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// builtin is one call of a command that works on the shell itself.
type builtin struct {
	*shell
	name string
	args []string
	out  *stream
}

func (b *builtin) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// failf tells an error, and returns the status given.
func (b *builtin) failf(status int, format string, args ...any) int {
	b.complain(fmt.Errorf(b.name+": "+format, args...))
	return status
}

// builtins are the commands that win over programs.
var builtins map[string]func(*builtin) int

func init() {
	nothing := func(*builtin) int { return 0 }
	builtins = map[string]func(*builtin) int{
		":": nothing, "true": nothing, "false": func(*builtin) int { return 1 },
		"hash": nothing, "bind": nothing, "complete": nothing, "compopt": nothing, "enable": nothing, "history": nothing,
		"disown": nothing, "bg": nothing, "suspend": nothing, "caller": func(*builtin) int { return 1 }, "compgen": func(*builtin) int { return 1 },
		"times": func(b *builtin) int { b.printf("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n"); return 0 },
		"echo":  echoCommand, "printf": printfCommand, "read": readCommand, "mapfile": mapfileCommand, "readarray": mapfileCommand,
		"cd": cdCommand, "pwd": pwdCommand, "pushd": pushdCommand, "popd": pushdCommand, "dirs": dirsCommand,
		"exit": exitCommand, "logout": exitCommand, "return": returnCommand, "break": loopCommand, "continue": loopCommand,
		"shift": shiftCommand, "set": setCommand, "unset": unsetCommand, "shopt": shoptCommand,
		"eval": evalCommand, "source": sourceCommand, ".": sourceCommand, "exec": execCommand, "command": commandCommand, "builtin": builtinCommand,
		"type": typeCommand, "alias": aliasCommand, "unalias": unaliasCommand, "trap": trapCommand,
		"wait": waitCommand, "jobs": jobsCommand, "fg": fgCommand, "kill": killCommand, "getopts": getoptsCommand,
		"test": testCommand, "[": testCommand, "umask": umaskCommand, "ulimit": ulimitCommand, "help": helpCommand,
		"export": declareCommand, "readonly": declareCommand, "declare": declareCommand, "typeset": declareCommand, "local": declareCommand, "let": letCommand,
	}
}

func helpCommand(b *builtin) int {
	b.printf("This is the shell of a simulated machine. Its builtins are:\n%s\nIts programs are in /usr/bin.\n", strings.Join(slices.Sorted(maps.Keys(builtins)), " "))
	return 0
}

func declareCommand(b *builtin) int {
	b.status = 0
	var args []any
	for _, arg := range b.args {
		args = append(args, arg)
	}
	b.declare(b.name, args)
	return b.status
}

func letCommand(b *builtin) int {
	n := int64(0)
	for _, arg := range b.args {
		n = b.arithmText(arg)
	}
	return boolStatus(n != 0)
}

// status is the number that exit and return were given, or what is the status now.
func (b *builtin) number() (int, bool) {
	if len(b.args) == 0 {
		return b.status, true
	}
	n, err := strconv.ParseInt(b.args[0], 10, 64)
	return int(uint8(n)), err == nil
}

func exitCommand(b *builtin) int {
	n, ok := b.number()
	if !ok {
		n = b.failf(2, "%s: numeric argument required", b.args[0])
	} else if len(b.args) > 1 {
		return b.failf(1, "too many arguments")
	}
	b.flow = exiting
	return n
}

func returnCommand(b *builtin) int {
	if b.calls == 0 && b.sources == 0 {
		return b.failf(2, "can only `return' from a function or sourced script")
	}
	n, ok := b.number()
	if !ok {
		n = b.failf(2, "%s: numeric argument required", b.args[0])
	}
	b.flow = returning
	return n
}

func loopCommand(b *builtin) int {
	if b.loops == 0 {
		return b.failf(0, "only meaningful in a `for', `while', or `until' loop")
	}
	n := 1
	if len(b.args) > 0 {
		var err error
		if n, err = strconv.Atoi(b.args[0]); err != nil {
			b.flow = exiting
			return b.failf(128, "%s: numeric argument required", b.args[0])
		} else if n < 1 {
			n = b.loops
			b.failf(1, "%s: loop count out of range", b.args[0])
		}
	}
	b.flowCount = min(n, b.loops)
	b.flow = breaking
	if b.name == "continue" {
		b.flow = continuing
	}
	return 0
}

func shiftCommand(b *builtin) int {
	n := 1
	if len(b.args) > 0 {
		var err error
		if n, err = strconv.Atoi(b.args[0]); err != nil {
			return b.failf(1, "%s: numeric argument required", b.args[0])
		}
	}
	if n < 0 || n > len(b.params) {
		return 1
	}
	b.params = b.params[n:]
	return 0
}

func unsetCommand(b *builtin) int {
	funcs, vars := false, false
	for _, arg := range b.args {
		name, sub, element := strings.Cut(arg, "[")
		switch {
		case arg == "-f":
			funcs = true
		case arg == "-v" || arg == "-n":
			vars = true
		case element && strings.HasSuffix(sub, "]"):
			b.unsetElem(name, strings.TrimSuffix(sub, "]"))
		case !funcs && (b.scopeOf(arg) != nil || slices.Contains(fixedVariables, arg)):
			b.unset(arg)
		case !vars:
			delete(b.funcs, arg)
		}
	}
	return 0
}

func evalCommand(b *builtin) int {
	text := strings.Join(b.args, " ")
	defer b.nest()()
	file, release, err := b.parse(text, "eval")
	if err != nil {
		return b.failf(2, "%v", err)
	}
	defer release()
	b.status = 0
	b.stmts(file.Stmts)
	return b.shell.status
}

func sourceCommand(b *builtin) int {
	if len(b.args) == 0 {
		return b.failf(2, "filename argument required")
	}
	defer b.nest()()
	name := b.args[0]
	file, err := b.open(name, vfs.O_RDONLY)
	if err != nil && !strings.Contains(name, "/") {
		if found, findErr := b.find(name); findErr == nil {
			file, err = b.open(found, vfs.O_RDONLY)
		}
	}
	if err != nil {
		b.complain(err)
		return 1
	}
	data, err := io.ReadAll(io.LimitReader(&stream{sh: b.shell, file: file}, int64(b.r.limits.Script)+1))
	file.close()
	if err != nil {
		return b.failf(1, "%s: %v", name, err)
	}
	tree, release, err := b.parse(string(data), name)
	if err != nil {
		return b.failf(2, "%v", err)
	}
	defer release()
	params, source := b.params, b.source
	if len(b.args) > 1 {
		b.params = b.args[1:]
	}
	b.source, b.status = name, 0
	b.sources++
	b.stmts(tree.Stmts)
	b.sources--
	if b.source = source; len(b.args) > 1 {
		b.params = params
	}
	if b.flow == returning {
		b.flow = onward
	}
	return b.shell.status
}

func execCommand(b *builtin) int {
	args := b.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-a" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	status := b.exec(args)
	b.flow = exiting
	return status
}

func builtinCommand(b *builtin) int {
	if len(b.args) == 0 {
		return 0
	}
	fn, ok := builtins[b.args[0]]
	if !ok {
		return b.failf(1, "%s: not a shell builtin", b.args[0])
	}
	return fn(&builtin{shell: b.shell, name: b.args[0], args: b.args[1:], out: b.out})
}

func commandCommand(b *builtin) int {
	args, verbose := b.args, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-v", "-V":
			verbose = args[0]
		case "-p", "--":
		default:
			return b.failf(2, "%s: invalid option", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if verbose == "" {
		if fn, ok := builtins[args[0]]; ok {
			return fn(&builtin{shell: b.shell, name: args[0], args: args[1:], out: b.out})
		}
		return b.exec(args)
	}
	status := 0
	for _, name := range args {
		kind, detail := b.kindOf(name)
		switch {
		case kind == "":
			status = 1
		case verbose == "-V":
			b.printf("%s\n", describeKind(name, kind, detail))
		case kind == "alias":
			b.printf("alias %s=%s\n", name, quoteAlways(detail))
		case kind == "file":
			b.printf("%s\n", detail)
		default:
			b.printf("%s\n", name)
		}
	}
	return status
}

// kindOf says what a name is as a command.
func (sh *shell) kindOf(name string) (kind, detail string) {
	if text, ok := sh.aliases[name]; ok {
		return "alias", text
	}
	if syntax.IsKeyword(name) {
		return "keyword", ""
	}
	if _, ok := sh.funcs[name]; ok {
		return "function", ""
	}
	if _, ok := builtins[name]; ok {
		return "builtin", ""
	}
	if file, err := sh.find(name); err == nil && sh.fs.Access(file, 1) == nil {
		if info, err := sh.fs.Stat(file); err == nil && !info.IsDir() {
			return "file", file
		}
	}
	if sh.s.injected(name) != nil {
		return "file", name
	}
	return "", ""
}

func describeKind(name, kind, detail string) string {
	switch kind {
	case "alias":
		return name + " is aliased to `" + detail + "'"
	case "keyword":
		return name + " is a shell keyword"
	case "function":
		return name + " is a function"
	case "builtin":
		return name + " is a shell builtin"
	}
	return name + " is " + detail
}

func typeCommand(b *builtin) int {
	status, flag := 0, ""
	for _, name := range b.args {
		if strings.HasPrefix(name, "-") {
			flag += name[1:]
			continue
		}
		kind, detail := b.kindOf(name)
		switch {
		case kind == "":
			status = 1
			if flag == "" {
				b.failf(1, "%s: not found", name)
			}
		case strings.Contains(flag, "t"):
			b.printf("%s\n", kind)
		case strings.ContainsAny(flag, "pP"):
			if kind == "file" {
				b.printf("%s\n", detail)
			}
		default:
			b.printf("%s\n", describeKind(name, kind, detail))
		}
	}
	return status
}

func aliasCommand(b *builtin) int {
	status := 0
	if len(b.args) == 0 {
		for _, name := range slices.Sorted(maps.Keys(b.aliases)) {
			b.printf("alias %s=%s\n", name, quoteAlways(b.aliases[name]))
		}
	}
	for _, arg := range b.args {
		name, text, ok := strings.Cut(arg, "=")
		old, known := b.aliases[name]
		switch {
		case ok && len(b.aliases) >= 1000:
			return b.failf(1, "too many aliases")
		case ok:
			b.hold(int64(len(name) + len(text) + 64))
			b.aliases[name] = text
		case known:
			b.printf("alias %s=%s\n", name, quoteAlways(old))
		default:
			status = b.failf(1, "%s: not found", name)
		}
	}
	return status
}

func unaliasCommand(b *builtin) int {
	for _, name := range b.args {
		if name == "-a" {
			clear(b.aliases)
		}
		delete(b.aliases, name)
	}
	return 0
}

func umaskCommand(b *builtin) int {
	if len(b.args) == 0 {
		b.printf("%04o\n", b.umask)
		return 0
	}
	n, err := strconv.ParseUint(b.args[len(b.args)-1], 8, 12)
	if err != nil {
		if b.args[0] == "-S" {
			b.printf("u=rwx,g=rx,o=rx\n")
			return 0
		}
		return b.failf(1, "%s: octal number out of range", b.args[0])
	}
	b.umask = uint32(n) & 0o777
	return 0
}

func ulimitCommand(b *builtin) int {
	for _, arg := range b.args {
		if n, err := strconv.Atoi(arg); arg == "unlimited" || err == nil && n > maxFD {
			return b.failf(1, "cannot modify limit: Operation not permitted")
		} else if err == nil {
			return 0
		}
	}
	if slices.Contains(b.args, "-n") {
		b.printf("%d\n", maxFD)
	} else {
		b.printf("unlimited\n")
	}
	return 0
}

func (b *builtin) changeDir(name string) int {
	full := name
	if !strings.HasPrefix(name, "/") {
		full = b.abs(name)
	}
	full = path.Clean(full) // the way back is the one that one came, as in bash without -P
	info, err := b.fs.Stat(full)
	switch {
	case err != nil:
		return b.failf(1, "%v", describe(name, err))
	case !info.IsDir():
		return b.failf(1, "%s: Not a directory", name)
	case b.fs.Access(full, 1) != nil:
		return b.failf(1, "%s: Permission denied", name)
	}
	old := b.dir
	b.dir = full
	b.set("OLDPWD", old)
	b.set("PWD", full)
	return 0
}

func cdCommand(b *builtin) int {
	args := slices.DeleteFunc(slices.Clone(b.args), func(a string) bool { return a == "-P" || a == "-L" || a == "--" })
	switch {
	case len(args) > 1:
		return b.failf(1, "too many arguments")
	case len(args) == 0:
		home := b.value("HOME")
		if home == "" {
			return b.failf(1, "HOME not set")
		}
		return b.changeDir(home)
	case args[0] == "-":
		old := b.value("OLDPWD")
		if old == "" {
			return b.failf(1, "OLDPWD not set")
		}
		status := b.changeDir(old)
		if status == 0 {
			b.printf("%s\n", b.dir)
		}
		return status
	}
	if args[0] == "" {
		return 0
	}
	status := b.changeDir(args[0])
	if status == 0 && slices.Contains(b.args, "-P") {
		if real, err := realPath(b.fs, b.dir); err == nil {
			b.dir = real
			b.set("PWD", real)
		}
	}
	return status
}

func pwdCommand(b *builtin) int {
	f, err := parseFlags(b.args, "LP", nil, true)
	if err != nil {
		return b.failf(2, "%v", err)
	}
	dir := b.dir
	if f.has('P') {
		if dir, err = realPath(b.fs, dir); err != nil {
			return b.failf(1, "%v", describe(dir, err))
		}
	}
	b.printf("%s\n", dir)
	return 0
}

// pushdCommand is pushd and popd. With -n only the stack changes.
func pushdCommand(b *builtin) int {
	args := b.args
	stay := len(args) > 0 && args[0] == "-n"
	if stay {
		args = args[1:]
	}
	stack := slices.Clone(b.dirs)
	to := ""
	switch {
	case b.name == "popd" && len(args) > 0:
		return b.failf(2, "%s: invalid argument", args[0])
	case len(args) > 0 && stay:
		stack = append([]string{args[0]}, stack...)
	case len(args) > 0:
		to, stack = args[0], append([]string{b.dir}, stack...)
	case stay && b.name == "pushd":
	case len(stack) == 0:
		return b.failf(1, "no other directory")
	case b.name == "popd":
		to, stack = stack[0], stack[1:]
	default:
		to, stack[0] = stack[0], b.dir
	}
	if to != "" && !stay {
		if status := b.changeDir(to); status != 0 {
			return status
		}
	}
	if len(stack) > b.r.limits.Depth {
		return b.failf(1, "the stack is full")
	}
	b.dirs = stack
	return dirsCommand(b)
}

func dirsCommand(b *builtin) int {
	all := append([]string{b.dir}, b.dirs...)
	for i, dir := range all {
		if home := b.value("HOME"); home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
			all[i] = "~" + dir[len(home):]
		}
	}
	b.printf("%s\n", strings.Join(all, " "))
	return 0
}
