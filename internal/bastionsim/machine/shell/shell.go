package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// flow is what a shell does next instead of the next statement.
type flow byte

const (
	onward flow = iota
	breaking
	continuing
	returning
	exiting
)

type options struct {
	errexit, nounset, xtrace, pipefail, noglob, noexec, allexport bool
	nullglob, dotglob, nocaseglob, globstar                       bool
}

// shell is one shell or subshell. It is used by one goroutine at a time.
type shell struct {
	s    *Session
	r    *run
	ctx  context.Context
	base context.Context // of jobs in the background, which an interactive line does not end

	user User
	fs   *vfs.View

	scopes []map[string]variable
	funcs  map[string]*syntax.Stmt
	traps  map[string]string
	options
	name   string // $0
	params []string
	dir    string
	umask  uint32
	fds    map[int]*file
	jobs   []*job

	pid, mainPID int64
	level        int // of subshells
	depth        int
	line         uint
	function     string
	source       string
	started      time.Time
	interactive  bool

	status      int
	err         error    // of the current expansion; nothing more is expanded or assigned until failed reports it
	substituted int      // status of the last command substitution, -1 if there was none
	commandLine bool     // the shell runs the text of bash -c
	dirs        []string // of pushd
	lastArg     string
	lastJob     string
	pipeStatus  []int
	getopt      int // within an argument

	progress
	inTrap  bool
	held    int64
	stopErr error
	subs    int
}

// progress is the position of a shell in its script.
type progress struct {
	flow                  flow
	flowCount             int // the number of loops that break or continue leaves
	loops, calls, sources int
	noExit                int // inside a condition, where errexit does not count
}

func (s *Session) newShell(r *run, ctx context.Context) *shell {
	o := s.o
	sh := &shell{
		s: s, r: r, ctx: ctx, base: ctx, user: o.User, fs: o.FS.As(o.User.Cred()),
		funcs: map[string]*syntax.Stmt{}, traps: map[string]string{},
		name: "bash", umask: 0o022, fds: map[int]*file{}, started: o.Clock.Now(),
		substituted: -1,
	}
	sh.pid = r.pids.Add(1)
	sh.mainPID = sh.pid
	sh.dir = s.startDir(sh.fs)
	sh.scopes = environScope(s.environ(sh.dir))
	return sh
}

// environScope returns a scope with the variables of an environment.
func environScope(env []string) []map[string]variable {
	scope := map[string]variable{}
	for _, pair := range env {
		if name, text, _ := strings.Cut(pair, "="); syntax.ValidName(name) {
			scope[name] = variable{set: true, str: text, exported: true}
		}
	}
	return []map[string]variable{scope}
}

// environ returns the initial environment of every session, followed by that of the options.
func (s *Session) environ(dir string) []string {
	u := s.o.User
	env := []string{"HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=/bin/bash", "PWD=" + dir}
	return append(append(env, "LANG=C.UTF-8", "PATH="+defaultPath), s.o.Env...)
}

const defaultPath = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (s *Session) startDir(view *vfs.View) string {
	for _, dir := range []string{s.o.Dir, s.o.User.Home} {
		if info, err := view.Stat(dir); err == nil && info.IsDir() && path.IsAbs(dir) {
			return path.Clean(dir)
		}
	}
	return "/"
}

// fork returns a subshell: a copy whose changes do not affect this shell. The caller must call end.
func (sh *shell) fork() *shell {
	c := *sh
	c.scopes = make([]map[string]variable, len(sh.scopes))
	for i, scope := range sh.scopes {
		c.scopes[i] = maps.Clone(scope)
	}
	c.funcs, c.traps = maps.Clone(sh.funcs), map[string]string{}
	c.params = slices.Clone(sh.params)
	c.fds = map[int]*file{}
	for n, f := range sh.fds {
		c.fds[n] = f.dup()
	}
	c.jobs, c.held, c.inTrap = nil, 0, false
	c.pid = sh.r.pids.Add(1)
	c.level++
	c.depth++
	c.hold(c.copied())
	return &c
}

// copied returns the memory that the copies of a subshell take, without the values, which it shares.
func (sh *shell) copied() int64 {
	entries := len(sh.params) + len(sh.funcs)
	for _, scope := range sh.scopes {
		entries += len(scope)
	}
	return int64(entries) * entryCost
}

// end runs the EXIT trap, and releases the files and the memory of a shell.
func (sh *shell) end() {
	sh.runTrap("EXIT")
	for _, f := range sh.fds {
		f.close()
	}
	sh.fds = nil
	_ = sh.r.grow(-sh.held)
}

// step counts n steps. It returns an error if the shell must stop.
func (sh *shell) step(n int) error {
	if sh.stopErr != nil {
		return sh.stopErr
	}
	select {
	case <-sh.ctx.Done():
		sh.stopErr = sh.ctx.Err()
		return sh.stopErr
	default:
	}
	if sh.r.steps.Add(int64(n)) > sh.r.limits.Steps {
		sh.stopErr = sh.r.kill("steps")
	}
	return sh.stopErr
}

// nest counts one more level of recursion until the returned function is called.
func (sh *shell) nest() func() {
	if sh.depth++; sh.depth > maxDepth {
		sh.kill("depth")
	}
	return func() { sh.depth-- }
}

// ok reports whether the current expansion has not failed.
func (sh *shell) ok() bool { return sh.err == nil && sh.stopErr == nil }

// fail keeps the first error of the current expansion.
func (sh *shell) fail(err error) {
	sh.err = cmp.Or(sh.err, err)
}

// failure is an error of an expansion or a command.
type failure struct {
	msg  string
	code int
	exit bool // the shell ends, as bash does for some errors of expansions
}

func (f *failure) Error() string { return f.msg }

func (sh *shell) failf(format string, args ...any) { sh.failWith(1, format, args...) }

// failWith is like failf, but also sets the status of the command.
func (sh *shell) failWith(code int, format string, args ...any) {
	sh.fail(&failure{msg: fmt.Sprintf(format, args...), code: code})
}

// errorOf adds the name of a command to its error.
func (sh *shell) errorOf(command string) {
	if f, ok := sh.err.(*failure); ok {
		f.msg = command + ": " + f.msg
	}
}

// fatalf is like failf, but the error ends the shell.
func (sh *shell) fatalf(format string, args ...any) {
	code := 1
	if sh.commandLine {
		code = 127
	}
	sh.fail(&failure{msg: fmt.Sprintf(format, args...), code: code, exit: true})
}

// kill ends the run because of a limit.
func (sh *shell) kill(limit string) { sh.fail(sh.r.kill(limit)) }

// failed ends a command: if an expansion has failed, it reports the error and sets the status.
func (sh *shell) failed() bool {
	err := sh.err
	if err == nil {
		return sh.stopErr != nil
	}
	sh.err, sh.status = nil, 1
	var f *failure
	if errors.As(err, &f) {
		sh.status = f.code
		if f.exit && !sh.interactive {
			sh.flow = exiting
		}
	}
	sh.complain(err)
	return true
}

func (sh *shell) stopped() bool {
	return sh.flow != onward || sh.step(1) != nil
}

func (sh *shell) stream(fd int) *stream { return &stream{sh: sh, file: sh.fds[fd]} }

// complain writes an error in the format of bash.
func (sh *shell) complain(err error) {
	if sh.step(0) != nil {
		return
	}
	where := "bash"
	if !sh.interactive && sh.line > 0 {
		where = fmt.Sprintf("%s: line %d", sh.name, sh.line)
	}
	_, _ = fmt.Fprintf(sh.stream(2), "%s: %v\n", where, err) // the error has no other place
}

// abs returns an absolute path. It does not clean the path, because the file system follows it as it is.
func (sh *shell) abs(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(sh.dir, "/") + "/" + name
}
