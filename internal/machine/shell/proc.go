package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// proc is a shell process: the shell itself or a subshell of it.
type proc struct {
	s        *Shell
	cred     vfs.Cred
	name     string
	params   []string
	dir      string
	umask    int
	vars     map[string]*variable
	funcs    map[string]function
	frames   []map[string]*variable
	traps    map[string]string
	fds      map[int]stream
	opt      options
	status   int
	pid      int
	shellPID int
	lastJob  int
	jobs     map[int]*job
	depth    int
	loops    int
	sourced  int
	quiet    int // inside a condition: errexit does not count
	held     int // memory of the variables
	optind   int // where getopts is within an argument
}

type function struct{ body *syntax.Stmt }

type options struct{ errexit, nounset, xtrace, noglob, pipefail, allexport, noclobber, noexec bool }

type job struct {
	done   chan struct{}
	status int
}

// stream is an open file of a process.
type stream struct {
	r   io.Reader
	w   io.Writer
	tty bool
}

func (p *proc) b() *budget     { return p.s.current }
func (p *proc) view() vfs.View { return p.s.cfg.FS.As(p.cred) }

func (p *proc) stdout() io.Writer { return p.writer(1) }
func (p *proc) stderr() io.Writer { return p.writer(2) }

func (p *proc) writer(fd int) io.Writer {
	if w := p.fds[fd].w; w != nil {
		return w
	}
	return badWriter{}
}

func (p *proc) stdin() io.Reader {
	if r := p.fds[0].r; r != nil {
		return r
	}
	return strings.NewReader("")
}

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, vfs.ErrBadFile }

func (p *proc) errf(format string, args ...any) {
	fmt.Fprintf(p.stderr(), format+"\n", args...)
}

// The ways control leaves a statement.
type (
	exiting   struct{}
	returning struct{}
	breaking  struct{ n int }
	resuming  struct{ n int }
	// fatal is an error of the shell that ends a script that is not interactive.
	fatal struct{ error }
)

func (*exiting) Error() string   { return "exit" }
func (*returning) Error() string { return "return" }
func (*breaking) Error() string  { return "break" }
func (*resuming) Error() string  { return "continue" }

// finish takes the error that ended a process, and says its status.
func (p *proc) finish(err error) int {
	var exit *exiting
	var ret *returning
	var brk *breaking
	var cont *resuming
	switch {
	case err == nil, errors.As(err, &exit), errors.As(err, &ret), errors.As(err, &brk), errors.As(err, &cont):
	case p.b().err() != nil:
		p.status = 137
	default:
		p.errf("%s: %v", p.name, err)
		p.status = max(p.status, 1)
	}
	return p.status
}

// fork makes a process that begins as a copy of this one. end gives its memory back.
func (p *proc) fork() (*proc, error) {
	if p.depth >= p.b().limits.Depth {
		return nil, p.b().fail(ErrDepth)
	}
	if p.b().processes.Add(1) > p.b().limits.Processes {
		p.b().processes.Add(-1)
		return nil, p.b().fail(ErrProcesses)
	}
	c := *p
	c.pid, c.depth, c.jobs, c.traps = p.s.cfg.NextPID(), p.depth+1, nil, nil
	c.params, c.funcs, c.fds = slices.Clone(p.params), maps.Clone(p.funcs), maps.Clone(p.fds)
	c.vars = make(map[string]*variable, len(p.vars))
	c.held, c.frames = 0, nil
	for range p.frames {
		c.frames = append(c.frames, map[string]*variable{})
	}
	for name, v := range p.vars {
		c.vars[name] = v.clone()
		c.held += v.size() + len(name)
	}
	if err := p.b().charge(c.held); err != nil {
		c.end()
		return nil, err
	}
	return &c, nil
}

func (p *proc) end() {
	p.b().processes.Add(-1)
	_ = p.b().charge(-p.held)
	p.held = 0
}

// replaceEnv forgets all variables but these.
func (p *proc) replaceEnv(env []string) {
	_ = p.b().charge(-p.held)
	p.vars, p.held, p.frames, p.funcs = map[string]*variable{}, 0, nil, map[string]function{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && validName(name) {
			_ = p.update(name, func(v *variable) { v.str, v.set, v.exported = value, true, true })
		}
	}
	if p.vars["PWD"] == nil || p.vars["PWD"].str != p.dir {
		_ = p.update("PWD", func(v *variable) { v.str, v.set, v.exported = p.dir, true, true })
	}
	_ = p.set("OPTIND", "1")
}

// spawn runs do in a child process of its own goroutine. The Shell waits for it before Run returns.
func (p *proc) spawn(do func(*proc) error) (*job, int, error) {
	child, err := p.fork()
	if err != nil {
		return nil, 0, err
	}
	j := &job{done: make(chan struct{})}
	p.s.jobs.Add(1)
	b := p.b()
	go func() {
		defer p.s.jobs.Done()
		defer close(j.done)
		defer child.end()
		defer b.internal()
		err := do(child)
		child.finish(err)
		child.trapExit()
		j.status = child.status
	}()
	return j, child.pid, nil
}

func (p *proc) trapExit() {
	if src := p.traps["EXIT"]; src != "" {
		delete(p.traps, "EXIT")
		status := p.status
		if err := p.eval(src, "trap"); err != nil {
			p.finish(err)
		}
		p.status = status
	}
}

func (p *proc) wait(j *job) error {
	select {
	case <-j.done:
		return p.b().err()
	case <-p.b().ctx.Done():
		return p.b().err()
	}
}

// substitute runs $(...).
func (p *proc) substitute(cs *syntax.CmdSubst) (string, error) {
	child, err := p.fork()
	if err != nil {
		return "", err
	}
	defer child.end()
	out := &capture{b: p.b()}
	defer out.release()
	child.fds[1] = stream{w: out}
	if path, ok := catShortcut(cs.Stmts); ok {
		err = child.cat(path, out)
	} else {
		err = child.stmts(cs.Stmts)
	}
	child.finish(err)
	child.trapExit()
	p.status = child.status
	if err := p.b().err(); err != nil {
		return "", err
	}
	return strings.TrimRight(strings.ReplaceAll(string(out.data), "\x00", ""), "\n"), nil
}

// catShortcut is $(<file).
func catShortcut(stmts []*syntax.Stmt) (*syntax.Word, bool) {
	if len(stmts) != 1 || stmts[0].Cmd != nil || len(stmts[0].Redirs) != 1 || stmts[0].Redirs[0].Op != syntax.RdrIn {
		return nil, false
	}
	return stmts[0].Redirs[0].Word, true
}

func (p *proc) cat(word *syntax.Word, out io.Writer) error {
	path, err := p.literal(word)
	if err != nil {
		return err
	}
	f, err := p.view().Open(p.abs(path), vfs.Read, 0)
	if err != nil {
		return describe(err)
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}

// describe words an error of the file system as a shell does: path, colon, reason.
func describe(err error) error {
	var pe interface{ Unwrap() error }
	if errors.As(err, &pe) {
		text := err.Error()
		if _, rest, ok := strings.Cut(text, " "); ok {
			return &complaint{rest}
		}
	}
	return err
}

// eval parses and runs src in this process.
func (p *proc) eval(src, name string) error {
	if p.depth >= p.b().limits.Depth {
		return p.b().fail(ErrDepth)
	}
	file, release, err := p.b().parse(src, name)
	if err != nil {
		if p.b().err() == nil {
			p.status = 2
			return &complaint{err.Error()}
		}
		return err
	}
	p.depth++
	before := len(p.funcs)
	err = p.stmts(file.Stmts)
	p.depth--
	if len(p.funcs) == before {
		release()
	}
	return err
}

func incomplete(src string) bool {
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	in := &guarded{r: strings.NewReader(src)}
	_, err := parser.Parse(in, "")
	return err != nil && !in.deep && syntax.IsIncomplete(err)
}

// sleep on the machine's clock.
func (p *proc) sleep(d time.Duration) error { return Sleep(p.b().ctx, p.s.cfg.Clock.After, d) }

// Sleep waits on a clock, or for the end of ctx.
func Sleep(ctx context.Context, after func(time.Duration) <-chan time.Time, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-after(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
