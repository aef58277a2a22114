package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
	"mvdan.cc/sh/v3/syntax"
)

func (p *proc) call(cmd *syntax.CallExpr) error {
	before := p.status
	args, err := p.fieldsOf(cmd.Args...)
	if err != nil {
		p.status = 1
		return err
	}
	if len(args) == 0 {
		// A substitution in the values gives its status; without one it is 0.
		p.status = 0
		for _, as := range cmd.Assigns {
			if err := p.assign(as, ""); err != nil {
				p.status = 1
				return &fatalUnlessInteractive{err}
			}
		}
		return nil
	}
	p.status = before
	if p.opt.xtrace {
		p.errf("+ %s", strings.Join(args, " "))
	}
	if len(cmd.Assigns) == 0 {
		return p.dispatch(args)
	}
	// Assignments before a command are for it alone.
	p.frames = append(p.frames, map[string]*variable{})
	defer p.leaveFrame()
	for _, as := range cmd.Assigns {
		value, err := p.literal(as.Value)
		if err != nil {
			return err
		}
		if err := p.localise(as.Name.Value); err != nil {
			return err
		}
		if err := p.update(as.Name.Value, func(v *variable) { v.str, v.set, v.exported = value, true, true }); err != nil {
			return err
		}
	}
	return p.dispatch(args)
}

// fatalUnlessInteractive marks failed assignments; the shell goes on after them as the complaint they are.
type fatalUnlessInteractive struct{ error }

func (f *fatalUnlessInteractive) Unwrap() error { return f.error }

// dispatch runs a function, a builtin or a program.
func (p *proc) dispatch(args []string) error {
	if f, ok := p.funcs[args[0]]; ok {
		return p.function(f, args)
	}
	if do, ok := builtins[args[0]]; ok {
		status, err := do(p, args)
		p.status = status
		return err
	}
	return p.exec(args)
}

func (p *proc) function(f function, args []string) error {
	if p.depth >= p.b().limits.Depth {
		return p.b().fail(ErrDepth)
	}
	size := 0
	for _, a := range args {
		size += len(a) + 16
	}
	if err := p.b().charge(size); err != nil {
		return err
	}
	params, loops := p.params, p.loops
	p.params, p.loops = args[1:], 0
	p.frames = append(p.frames, map[string]*variable{})
	p.depth++
	p.sourced++
	p.status = 0
	err := p.stmt(f.body)
	p.sourced--
	p.depth--
	p.leaveFrame()
	p.params, p.loops = params, loops
	_ = p.b().charge(-size)
	var ret *returning
	if errors.As(err, &ret) {
		return nil
	}
	return err
}

// builtinMark is how a program of the machine begins; the name of the function in the table follows.
const builtinMark = "\x7fELF:"

// Program is what the file of a built-in program contains.
func Program(name string) []byte { return []byte(builtinMark + name + "\n") }

// find looks a program up in PATH, or by its path.
func (p *proc) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return p.executable(p.abs(name))
	}
	err := error(vfs.ErrNotExist)
	for _, dir := range strings.Split(p.getOr("PATH", ""), ":") {
		set(&dir, ".")
		file, e := p.executable(p.abs(path.Join(dir, name)))
		if e == nil {
			return file, nil
		}
		if errors.Is(e, fs.ErrPermission) {
			err = e
		}
	}
	return "", err
}

func (p *proc) executable(file string) (string, error) {
	info, err := p.view().Stat(file)
	switch {
	case err != nil:
		return "", errors.Unwrap(err)
	case info.IsDir():
		return "", vfs.ErrIsDir
	case !p.view().Access(file, 1):
		return "", vfs.ErrPermission
	}
	return file, nil
}

// exec runs a program in this process.
func (p *proc) exec(args []string) error {
	if err := p.b().step(); err != nil {
		return err
	}
	file, err := p.find(args[0])
	if err != nil {
		p.status = 126
		if errors.Is(err, fs.ErrNotExist) || !strings.Contains(args[0], "/") && !errors.Is(err, fs.ErrPermission) {
			p.status = 127
			if !strings.Contains(args[0], "/") {
				p.errf("%s: %s: command not found", p.name, clip(args[0]))
				return nil
			}
		}
		p.errf("%s: %s: %v", p.name, clip(args[0]), err)
		return nil
	}
	code, err := p.view().ReadFile(file)
	if err != nil {
		p.errf("%s: %s: %v", p.name, clip(args[0]), vfs.ErrPermission)
		p.status = 126
		return nil
	}
	if name, ok := strings.CutPrefix(string(code[:min(len(code), 256)]), builtinMark); ok {
		return p.program(strings.TrimSpace(name), args)
	}
	return p.script(file, code, args)
}

// program runs a function of the table.
func (p *proc) program(name string, args []string) error {
	run, ok := shellPrograms[name]
	if !ok {
		run, ok = p.s.cfg.Commands[name]
	}
	if !ok {
		p.errf("%s: %s: cannot execute: required file not found", p.name, clip(args[0]))
		p.status = 127
		return nil
	}
	status := run(&Invocation{
		Ctx: p.b().ctx, Args: args, Env: p.environ(), Dir: p.dir, Cred: p.cred, FS: p.view(), Umask: p.umask,
		Stdin: p.stdin(), Stdout: p.stdout(), Stderr: p.stderr(), Terminal: p.fds[0].tty, PID: p.pid,
		Clock: p.s.cfg.Clock, MaxText: p.b().limits.Text, p: p,
	})
	p.status = status & 0xff
	return p.b().err()
}

// script runs a file as its first line says, or as a shell script.
func (p *proc) script(file string, code []byte, args []string) error {
	if bytes.IndexByte(code[:min(len(code), 512)], 0) >= 0 {
		p.errf("%s: %s: cannot execute binary file: Exec format error", p.name, clip(args[0]))
		p.status = 126
		return nil
	}
	if line, ok := strings.CutPrefix(string(code[:min(len(code), 256)]), "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		if len(words) == 0 {
			words = []string{"/bin/sh"}
		}
		if !isShell(path.Base(words[len(words)-1])) && !isShell(path.Base(words[0])) {
			child, err := p.fork()
			if err != nil {
				return err
			}
			defer child.end()
			err = child.exec(append(append(words, file), args[1:]...))
			p.status = child.status
			return err
		}
		if len(words) > 1 && strings.HasPrefix(words[1], "-") {
			return p.newShell(string(code), file, args[1:], words[1])
		}
	}
	return p.newShell(string(code), file, args[1:], "")
}

func isShell(name string) bool { return name == "sh" || name == "bash" || name == "dash" }

// newShell runs src in a shell of its own, which inherits what is exported and nothing else.
func (p *proc) newShell(src, name string, params []string, flags string) error {
	child, err := p.fork()
	if err != nil {
		return err
	}
	defer child.end()
	child.replaceEnv(p.environ())
	child.name, child.params, child.shellPID, child.opt = name, params, child.pid, options{}
	child.quiet, child.loops, child.sourced, child.lastJob = 0, 0, 0, 0
	if err := child.setOptions(flags); err != nil {
		return err
	}
	child.status = 0
	child.finish(child.eval(src, name))
	child.trapExit()
	p.status = child.status
	return p.b().err()
}

var shellPrograms map[string]Command

func init() {
	shellPrograms = map[string]Command{"sh": runShell, "bash": runShell}
}

// runShell is the program sh.
func runShell(in *Invocation) int {
	p, args := in.p, in.Args[1:]
	flags, command := "", false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		f := args[0]
		if args = args[1:]; f == "--" {
			break
		}
		if strings.HasPrefix(f, "--") {
			continue
		}
		command = command || strings.Contains(f, "c")
		flags += strings.Map(func(r rune) rune {
			if strings.ContainsRune("eunfax", r) {
				return r
			}
			return -1
		}, f)
	}
	src, name := "", in.Args[0]
	switch {
	case command:
		if len(args) == 0 {
			fmt.Fprintf(in.Stderr, "%s: -c: option requires an argument\n", name)
			return 2
		}
		src, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case len(args) > 0 && args[0] != "-":
		data, err := in.FS.ReadFile(in.Abs(args[0]))
		if err != nil {
			fmt.Fprintf(in.Stderr, "%s: %s: No such file or directory\n", name, clip(args[0]))
			return 127
		}
		src, name, args = string(data), args[0], args[1:]
	default:
		out := &capture{b: p.b()}
		defer out.release()
		if _, err := copyAll(out, in.Stdin); err != nil {
			return 1
		}
		src, args = string(out.data), nil
	}
	if flags != "" {
		flags = "-" + flags
	}
	if err := p.newShell(src, name, args, flags); err != nil {
		return 1
	}
	return p.status
}
