package shell

import (
	"cmp"
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

type builtin struct {
	*shell
	name string
	f    flags    // of a command that has flags
	args []string // the arguments after the flags
	out  *stream
}

func (b *builtin) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// failf writes an error, and returns the given status.
func (b *builtin) failf(status int, format string, args ...any) int {
	return b.refuse(status, b.name+": "+format, args...)
}

// builtinCommand is a command that takes precedence over programs. flags are its options for parseFlags, or "".
type builtinCommand struct {
	run   func(*builtin) int
	flags string
}

var builtins map[string]builtinCommand

func init() {
	status := func(status int) func(*builtin) int { return func(*builtin) int { return status } }
	builtins = map[string]builtinCommand{
		"cd": {cdCommand, "+L P"}, "pwd": {pwdCommand, "+L P"}, "dirs": {dirsCommand, "+l p"}, "pushd": {pushdCommand, "+n"},
		"popd": {pushdCommand, "+n"}, "exec": {execCommand, "+c l a:"}, "command": {commandCommand, "+p v V"},
		"type": {typeCommand, "+t p"}, "read": {readCommand, "+r s e a: d: n: N: p: t: u: i:"},
		"mapfile": {mapfileCommand, "+t d: u:"}, "readarray": {mapfileCommand, "+t d: u:"}, "trap": {trapCommand, "+p l"},
		"wait": {waitCommand, "+f n p:"}, "jobs": {jobsCommand, "+l n p r s"}, "shopt": {shoptCommand, "+s u q o"},
		"unset": {unsetCommand, "+f v n"},
	}
	for name, run := range map[string]func(*builtin) int{
		":": status(0), "true": status(0), "false": status(1), "hash": status(0), "bind": status(0), "complete": status(0),
		"compopt": status(0), "enable": status(0), "history": status(0), "disown": status(0), "ulimit": status(0),
		"caller": status(1), "compgen": status(1), "echo": echoCommand, "printf": printfCommand,
		"exit": exitCommand, "logout": exitCommand, "return": returnCommand, "break": loopCommand, "continue": loopCommand,
		"shift": shiftCommand, "set": setCommand, "let": letCommand, "getopts": getoptsCommand,
		"eval": evalCommand, "source": sourceCommand, ".": sourceCommand, "builtin": builtinOf,
		"kill": killCommand, "test": testCommand, "[": testCommand, "umask": umaskCommand,
		"export": declareCommand, "readonly": declareCommand, "declare": declareCommand,
		"typeset": declareCommand, "local": declareCommand,
	} {
		builtins[name] = builtinCommand{run: run}
	}
}

func (sh *shell) runBuiltin(args []string, out *stream) int {
	b := &builtin{shell: sh, name: args[0], args: args[1:], out: out}
	command := builtins[b.name]
	if command.flags != "" {
		var err error
		if b.f, err = parseFlags(b.args, command.flags); err != nil {
			return b.failf(2, "%v", err)
		}
		b.args = b.f.args
	}
	return command.run(b)
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

// exitStatus returns the number that exit or return was given, or the status of the last command.
func (b *builtin) exitStatus() (status int, ok bool) {
	if len(b.args) == 0 {
		return b.status, true
	}
	n, err := strconv.ParseInt(b.args[0], 10, 64)
	if err != nil {
		return b.failf(2, "%s: numeric argument required", b.args[0]), false
	}
	return int(uint8(n)), true
}

func exitCommand(b *builtin) int {
	status, ok := b.exitStatus()
	if ok && len(b.args) > 1 {
		return b.failf(1, "too many arguments")
	}
	b.flow = exiting
	return status
}

func returnCommand(b *builtin) int {
	if b.calls == 0 && b.sources == 0 {
		return b.failf(2, "can only `return' from a function or sourced script")
	}
	b.flow = returning
	status, _ := b.exitStatus()
	return status
}

// count returns the number that break, continue or shift was given, or 1.
func (b *builtin) count() (n int, err error) {
	if len(b.args) == 0 {
		return 1, nil
	}
	if n, err = strconv.Atoi(b.args[0]); err != nil {
		b.failf(1, "%s: numeric argument required", b.args[0])
	}
	return n, err
}

func loopCommand(b *builtin) int {
	if b.loops == 0 {
		return b.failf(0, "only meaningful in a `for', `while', or `until' loop")
	}
	n, err := b.count()
	if err != nil {
		b.flow = exiting
		return 128
	}
	if n < 1 {
		n = b.loops
		b.failf(1, "%s: loop count out of range", b.args[0])
	}
	b.flowCount = min(n, b.loops)
	if b.flow = breaking; b.name == "continue" {
		b.flow = continuing
	}
	return 0
}

func shiftCommand(b *builtin) int {
	n, err := b.count()
	if err != nil || n < 0 || n > len(b.params) {
		return 1
	}
	b.params = b.params[n:]
	return 0
}

func unsetCommand(b *builtin) int {
	for _, arg := range b.args {
		name, sub, element := strings.Cut(arg, "[")
		switch {
		case element && strings.HasSuffix(sub, "]"):
			b.unsetElem(name, strings.TrimSuffix(sub, "]"))
		case !b.f.has('f') && (b.scopeOf(arg) != nil || b.locked(arg)):
			b.unset(arg)
		case !b.f.has('v'):
			delete(b.funcs, arg)
		}
	}
	return 0
}

func evalCommand(b *builtin) int {
	defer b.nest()()
	b.status = 0
	b.runScript(strings.Join(b.args, " "), "eval")
	return b.status
}

func sourceCommand(b *builtin) int {
	if len(b.args) == 0 {
		return b.failf(2, "filename argument required")
	}
	defer b.nest()()
	name := b.args[0]
	file, err := b.open(name, vfs.O_RDONLY)
	if found, findErr := b.find(name); err != nil && findErr == nil {
		file, err = b.open(found, vfs.O_RDONLY)
	}
	if err != nil {
		return b.refuse(1, "%v", err)
	}
	data, err := io.ReadAll(io.LimitReader(&stream{sh: b.shell, file: file}, maxScript+1))
	file.close()
	if err != nil {
		return b.failf(1, "%s: %v", name, err)
	}
	params, source := b.params, b.source
	if len(b.args) > 1 {
		b.params = b.args[1:]
	}
	b.source = name
	b.sources++
	b.status = 0
	b.runScript(string(data), name)
	b.sources--
	if b.source = source; len(b.args) > 1 {
		b.params = params
	}
	if b.flow == returning {
		b.flow = onward
	}
	return b.status
}

func execCommand(b *builtin) int {
	if len(b.args) == 0 {
		return 0
	}
	status := b.exec(b.args)
	b.flow = exiting
	return status
}

func builtinOf(b *builtin) int {
	switch {
	case len(b.args) == 0:
		return 0
	case builtins[b.args[0]].run == nil:
		return b.failf(1, "%s: not a shell builtin", b.args[0])
	}
	return b.runBuiltin(b.args, b.out)
}

func commandCommand(b *builtin) int {
	switch {
	case len(b.args) == 0:
		return 0
	case b.f.has('V'):
		b.f = flags{}
		return typeCommand(b)
	case !b.f.has('v') && builtins[b.args[0]].run != nil:
		return b.runBuiltin(b.args, b.out)
	case !b.f.has('v'):
		return b.exec(b.args)
	}
	status := 1
	for _, name := range b.args {
		kind, detail := b.kindOf(name)
		if kind != "" {
			b.printf("%s\n", detail)
			status = 0
		}
	}
	return status
}

// kindOf returns the kind of command that a name is, and the name or, for a file, the path.
func (sh *shell) kindOf(name string) (kind, detail string) {
	file, err := sh.find(name)
	info, statErr := sh.fs.Stat(file)
	switch {
	case syntax.IsKeyword(name):
		return "keyword", name
	case sh.funcs[name] != nil:
		return "function", name
	case builtins[name].run != nil:
		return "builtin", name
	case err == nil && statErr == nil && !info.IsDir() && sh.fs.Access(file, 1) == nil:
		return "file", file
	}
	return "", ""
}

var kindTexts = map[string]string{"keyword": "a shell keyword", "function": "a function", "builtin": "a shell builtin"}

func typeCommand(b *builtin) int {
	status := 0
	for _, name := range b.args {
		kind, detail := b.kindOf(name)
		switch {
		case kind == "":
			if status = 1; len(b.f.set) == 0 {
				b.failf(1, "%s: not found", name)
			}
		case b.f.has('t'):
			b.printf("%s\n", kind)
		case b.f.has('p') && kind == "file":
			b.printf("%s\n", detail)
		case !b.f.has('p'):
			b.printf("%s is %s\n", name, cmp.Or(kindTexts[kind], detail))
		}
	}
	return status
}

func umaskCommand(b *builtin) int {
	if len(b.args) == 0 {
		b.printf("%04o\n", b.umask)
		return 0
	}
	n, err := strconv.ParseUint(b.args[0], 8, 12)
	if err != nil {
		return b.failf(1, "%s: octal number out of range", b.args[0])
	}
	b.umask = uint32(n) & 0o777
	return 0
}

// changeDir enters a directory. Unless physical is set, its path keeps symbolic links.
func (b *builtin) changeDir(name string, physical bool) int {
	full := path.Clean(b.abs(name)) // ".." removes the last part of the path, even if it is a link
	info, err := b.fs.Stat(full)
	switch {
	case err != nil:
		return b.failf(1, "%v", describe(name, err))
	case !info.IsDir():
		return b.failf(1, "%s: Not a directory", name)
	case b.fs.Access(full, 1) != nil:
		return b.failf(1, "%s: Permission denied", name)
	}
	if real, err := b.fs.Resolve(full); physical && err == nil {
		full = real
	}
	old := b.dir
	b.dir = full
	b.set("OLDPWD", old)
	b.set("PWD", full)
	return 0
}

func cdCommand(b *builtin) int {
	if len(b.args) > 1 {
		return b.failf(1, "too many arguments")
	}
	name, variable := "", "HOME"
	if len(b.args) > 0 {
		if name, variable = b.args[0], ""; name == "" {
			return 0
		} else if name == "-" {
			variable = "OLDPWD"
		}
	}
	if variable != "" {
		if name = b.value(variable); name == "" {
			return b.failf(1, "%s not set", variable)
		}
	}
	status := b.changeDir(name, b.f.has('P'))
	if status == 0 && variable == "OLDPWD" {
		b.printf("%s\n", b.dir)
	}
	return status
}

func pwdCommand(b *builtin) int {
	dir := b.dir
	if b.f.has('P') {
		var err error
		if dir, err = b.fs.Resolve(dir); err != nil {
			return b.failf(1, "%v", describe(dir, err))
		}
	}
	b.printf("%s\n", dir)
	return 0
}

// pushdCommand implements pushd and popd. With -n, only the stack changes.
func pushdCommand(b *builtin) int {
	if b.name == "popd" && len(b.args) > 0 {
		return b.failf(2, "%s: invalid argument", b.args[0])
	}
	stay, to, stack := b.f.has('n'), "", slices.Clone(b.dirs)
	switch {
	case len(b.args) > 0 && stay:
		stack = append(b.args[:1:1], stack...)
	case len(b.args) > 0:
		to, stack = b.args[0], append([]string{b.dir}, stack...)
	case stay && b.name == "pushd":
		return 0
	case len(stack) == 0:
		return b.failf(1, "no other directory")
	case b.name == "popd":
		to, stack = stack[0], stack[1:]
	default:
		to, stack[0] = stack[0], b.dir
	}
	if len(stack) > maxDepth {
		return b.failf(1, "the stack is full")
	}
	if !stay {
		if status := b.changeDir(to, false); status != 0 {
			return status
		}
	}
	b.dirs = stack
	return dirsCommand(b)
}

func dirsCommand(b *builtin) int {
	all := append([]string{b.dir}, b.dirs...)
	for i, dir := range all {
		all[i] = b.withTilde(dir)
	}
	b.printf("%s\n", strings.Join(all, " "))
	return 0
}

// withTilde returns a path as prompts show it.
func (sh *shell) withTilde(dir string) string {
	home := sh.value("HOME")
	if rest, ok := strings.CutPrefix(dir, home); ok && len(home) > 1 && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return dir
}

func (o *options) setOptions() map[string]*bool {
	return map[string]*bool{
		"errexit": &o.errexit, "nounset": &o.nounset, "xtrace": &o.xtrace, "pipefail": &o.pipefail, "noglob": &o.noglob,
		"noexec": &o.noexec, "allexport": &o.allexport,
	}
}

var setLetters = map[rune]string{
	'e': "errexit", 'u': "nounset", 'x': "xtrace", 'f': "noglob", 'n': "noexec", 'a': "allexport",
}

func (o *options) shopts() map[string]*bool {
	return map[string]*bool{
		"nullglob": &o.nullglob, "dotglob": &o.dotglob, "nocaseglob": &o.nocaseglob, "globstar": &o.globstar,
	}
}

func (sh *shell) flagLetters() string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(setLetters)) {
		if *sh.setOptions()[setLetters[c]] {
			b.WriteRune(c)
		}
	}
	if sh.interactive {
		b.WriteByte('i')
	}
	return b.String()
}

// setFlags sets options by their letters. It accepts some letters that have no effect here.
func (sh *shell) setFlags(letters string, on bool) error {
	for _, c := range letters {
		if name, ok := setLetters[c]; ok {
			*sh.setOptions()[name] = on
		} else if !strings.ContainsRune("bhkmptvBEHPTi", c) {
			return fmt.Errorf("-%c: invalid option", c)
		}
	}
	return nil
}

func setCommand(b *builtin) int {
	if len(b.args) == 0 {
		for _, name := range b.namesWith("") {
			if v := b.raw(name); v.kind == scalar && v.set {
				b.printf("%s=%s\n", name, quote(v.str))
			}
		}
	}
	for args := b.args; len(args) > 0; {
		arg := args[0]
		if arg == "--" || arg == "-" || arg == "+" {
			b.xtrace = b.xtrace && arg != "-"
			if len(args) > 1 || arg == "--" {
				b.params = slices.Clone(args[1:])
			}
			return 0
		}
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
			b.params = args
			return 0
		}
		args = args[1:]
		on := arg[0] == '-'
		letters, named := strings.CutSuffix(arg[1:], "o")
		if err := b.setFlags(letters, on); err != nil {
			return b.failf(2, "%v", err)
		}
		switch {
		case named && len(args) == 0:
			b.listOptions(b.setOptions(), slices.Sorted(maps.Keys(b.setOptions())))
		case named:
			if p := b.setOptions()[args[0]]; p != nil {
				*p = on
			} else if !slices.Contains(ignoredOptions, args[0]) {
				return b.failf(2, "%s: invalid option name", args[0])
			}
			args = args[1:]
		}
	}
	return 0
}

// ignoredOptions are options of set and shopt that have no effect here.
var ignoredOptions = []string{
	"posix", "vi", "emacs", "monitor", "errtrace", "functrace", "history", "braceexpand", "hashall", "verbose", "nolog",
	"notify", "physical", "privileged", "extglob", "checkwinsize", "histappend", "cmdhist", "sourcepath", "progcomp",
	"inherit_errexit", "promptvars", "login_shell", "huponexit", "interactive_comments",
}

// listOptions prints options, and returns 1 if one of them is off.
func (b *builtin) listOptions(all map[string]*bool, names []string) int {
	status := 0
	for _, name := range names {
		state := "on"
		if p := all[name]; p == nil || !*p {
			state, status = "off", 1
		}
		if !b.f.has('q') {
			b.printf("%-15s\t%s\n", name, state)
		}
	}
	return status
}

func shoptCommand(b *builtin) int {
	all := b.shopts()
	if b.f.has('o') {
		all = b.setOptions()
	}
	switch {
	case len(b.args) == 0:
		b.listOptions(all, slices.Sorted(maps.Keys(all)))
		return 0
	case !b.f.has('s') && !b.f.has('u'):
		return b.listOptions(all, b.args)
	}
	status := 0
	for _, name := range b.args {
		if p := all[name]; p != nil {
			*p = b.f.has('s')
		} else if !slices.Contains(ignoredOptions, name) {
			status = b.failf(1, "%s: invalid shell option name", name)
		}
	}
	return status
}
