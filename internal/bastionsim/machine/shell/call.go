package shell

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func (sh *shell) simple(cmd *syntax.CallExpr) {
	sh.substituted = -1
	args := sh.fields(cmd.Args)
	if !sh.ok() {
		return
	}
	if len(args) == 0 {
		sh.assignments(cmd.Assigns)
		return
	}
	if len(cmd.Assigns) > 0 {
		sh.pushScope()
		defer sh.popScope()
	}
	for _, as := range cmd.Assigns {
		text := sh.assignText(as)
		if sh.get(as.Name.Value).readonly {
			sh.failf("%s: readonly variable", as.Name.Value)
		}
		sh.store(sh.scopes[len(sh.scopes)-1], as.Name.Value, variable{set: true, str: text, exported: true})
	}
	if !sh.ok() {
		return
	}
	if sh.xtrace {
		quoted := make([]string, len(args))
		for i, a := range args {
			quoted[i] = quote(a)
		}
		sh.trace(strings.Join(quoted, " "))
	}
	sh.call(args)
	sh.lastArg = args[len(args)-1]
}

// assignments executes assignments that have no command.
func (sh *shell) assignments(list []*syntax.Assign) {
	for _, as := range list {
		sh.assignOne(as)
		switch {
		case !sh.xtrace || !sh.ok():
		case as.Array != nil || as.Index != nil:
			sh.trace(sh.sourceOf(as))
		default:
			sh.trace(as.Name.Value + "=" + quote(sh.value(as.Name.Value)))
		}
	}
	if f, ok := sh.err.(*failure); ok && strings.HasSuffix(f.msg, "readonly variable") {
		f.exit = true
	}
	sh.status = max(0, sh.substituted)
}

func (sh *shell) trace(text string) {
	_, _ = io.WriteString(sh.stream(2), sh.value("PS4")+text+"\n") // the error has no other place
}

func (sh *shell) call(args []string) {
	if sh.stopped() {
		return
	}
	if fn, ok := sh.funcs[args[0]]; ok {
		sh.callFunction(args, fn)
		return
	}
	if builtins[args[0]].run != nil {
		out := sh.stream(1)
		sh.status = sh.runBuiltin(args, out)
		sh.errorOf(args[0])
		if sh.failed(); out.broken {
			sh.status, sh.flow = 141, exiting
		}
		return
	}
	sh.status = sh.exec(args)
}

func (sh *shell) callFunction(args []string, body *syntax.Stmt) {
	defer sh.nest()()
	params, name, loops := sh.params, sh.function, sh.loops
	sh.params, sh.function, sh.loops = args[1:], args[0], 0
	sh.pushScope()
	sh.calls++
	sh.stmt(body)
	sh.calls--
	sh.popScope()
	sh.params, sh.function, sh.loops = params, name, loops
	if sh.flow == returning {
		sh.flow = onward
	}
}

// find returns the file of a command: by its path, or from PATH.
func (sh *shell) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return sh.abs(name), nil
	}
	var found error = fs.ErrNotExist
	list, set := sh.get("PATH").first()
	if !set {
		list = defaultPath
	}
	for dir := range strings.SplitSeq(list, ":") {
		file := strings.TrimSuffix(sh.abs(cmp.Or(dir, ".")), "/") + "/" + name
		info, err := sh.fs.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if sh.fs.Access(file, 1) == nil {
			return file, nil
		}
		found = syscall.EACCES
	}
	return "", found
}

func (sh *shell) exec(args []string) int {
	name := args[0]
	file, err := sh.find(name)
	var data []byte
	if err == nil {
		data, err = sh.readProgram(file)
	}
	if program, ok := bytes.CutPrefix(data, []byte(vfs.ProgramMagic)); ok {
		if pr, known := programs[strings.TrimSpace(string(program))]; known {
			return sh.runProgram(pr, args)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.Contains(name, "/"):
		return sh.refuse(127, "%s: command not found", name)
	case errors.Is(err, fs.ErrNotExist):
		return sh.refuse(127, "%v", describe(name, err))
	case err != nil:
		return sh.refuse(126, "%v", describe(name, err))
	}
	return sh.execScript(file, data, args)
}

// refuse writes an error, and returns the given status.
func (sh *shell) refuse(status int, format string, args ...any) int {
	sh.complain(fmt.Errorf(format, args...))
	return status
}

// readProgram reads a file to execute. It reads as root, because executing a file does not require the right to read
// it.
func (sh *shell) readProgram(file string) ([]byte, error) {
	info, err := sh.fs.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case sh.fs.Access(file, 1) != nil:
		return nil, syscall.EACCES
	}
	return sh.fs.As(vfs.Root).ReadFile(file)
}

// execScript runs a file with an interpreter line, or without any, in a new shell.
func (sh *shell) execScript(file string, data []byte, args []string) int {
	line, _, _ := bytes.Cut(data[:min(len(data), 4096)], []byte("\n"))
	if bytes.IndexByte(line, 0) >= 0 || bytes.HasPrefix(line, []byte("\x7fELF")) {
		return sh.refuse(126, "%s: cannot execute binary file: Exec format error", args[0])
	}
	var flags []string
	if text, ok := strings.CutPrefix(string(line), "#!"); ok {
		words := strings.Fields(text)
		if len(words) > 1 && path.Base(words[0]) == "env" {
			words = words[1:]
		}
		if len(words) == 0 || path.Base(words[0]) != "bash" && path.Base(words[0]) != "sh" {
			return sh.refuse(126, "%s: %s: bad interpreter: No such file or directory", args[0], text)
		}
		flags = words[1:]
	}
	if strings.Contains(args[0], "/") {
		file = args[0]
	}
	sub := sh.newProgram(nil)
	for _, f := range flags {
		if strings.HasPrefix(f, "-") {
			_ = sub.setFlags(f[1:], true) // unknown ones are ignored
		}
	}
	return sub.script(string(data), file, args[1:])
}

// newProgram returns a shell below this one that inherits only an environment: env, or that of this shell if env is
// nil.
func (sh *shell) newProgram(env []string) *shell {
	if env == nil {
		env = sh.environ()
	}
	c := sh.fork()
	c.scopes = environScope(env)
	c.funcs, c.options = map[string]*syntax.Stmt{}, options{}
	c.mainPID, c.level, c.progress, c.interactive = c.pid, 0, progress{}, false
	c.function, c.source, c.line, c.params, c.commandLine, c.dirs = "", "", 0, nil, false, nil
	for _, pair := range env {
		c.hold(int64(len(pair)) + entryCost)
	}
	return c
}

// script runs a text in this shell, and ends the shell.
func (sh *shell) script(text, name string, args []string) int {
	defer sh.end()
	defer sh.nest()()
	if !sh.ok() {
		return statusKilled
	}
	sh.name, sh.params, sh.source = name, args, name
	sh.runScript(text, name)
	return sh.status
}

func (sh *shell) runProgram(pr program, args []string) int {
	defer sh.nest()()
	if !sh.ok() {
		return statusKilled
	}
	held := sh.held
	defer func() { sh.hold(held - sh.held) }()
	out := sh.stream(1)
	p := &Process{shell: sh, Args: args, Stdin: sh.stream(0), Stdout: out, Stderr: sh.stream(2)}
	f, err := pr.parse(p.Args[1:])
	if err == nil && len(f.args) < pr.operands {
		err = errors.New("missing operand")
	}
	status := max(pr.usage, 1)
	if err != nil {
		_ = p.Fail(err)
	} else {
		status = pr.run(p, f)
	}
	if sh.err != nil { // the program has reported it
		sh.err, status = nil, max(status, 1)
	}
	if out.broken {
		return 141
	}
	return status & 0xff
}
