package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Session is what a user does on a machine. Run may be called by many at a time; each call is a shell of its own.
type Session struct{ o Options }

// Cred is the user for the file system.
func (u User) Cred() vfs.Cred { return vfs.Cred{UID: u.UID, GID: u.GID, Groups: u.Groups} }

// New makes a session. It starts nothing.
func New(o Options) (*Session, error) {
	if o.FS == nil {
		return nil, errors.New("making a session: the options have no file system")
	}
	if o.Clock == nil {
		return nil, errors.New("making a session: the options have no clock")
	}
	if o.User.Name == "" && o.User.UID == 0 {
		o.User.Name = "root"
	}
	if o.User.Home == "" {
		o.User.Home = "/"
		if o.User.UID == 0 {
			o.User.Home = "/root"
		}
	}
	o.Limits = o.Limits.withDefaults()
	return &Session{o}, nil
}

func (s *Session) hostname() string {
	if s.o.System != nil {
		if name := s.o.System.Hostname(); name != "" {
			return name
		}
	}
	if s.o.Hostname != "" {
		return s.o.Hostname
	}
	name, err := s.o.FS.ReadFile("/etc/hostname")
	if err != nil {
		return "localhost"
	}
	return strings.TrimSpace(string(name))
}

// injected is a command of the options by its path or name.
func (s *Session) injected(name string) Command {
	if c := s.o.Commands[name]; c != nil {
		return c
	}
	return s.o.Commands[path.Base(name)]
}

// Run executes a script or a command line, and returns its exit status. When it was ended by a limit the error is a
// *LimitError, by ctx that context's; the status is then 137. A script that cannot be read has status 2 and no error: what
// is wrong is on stderr. Jobs that still run in the background at the end of the script are ended.
//
// stdin may be nil. If the script reads it, one goroutine waits in stdin.Read until that returns: close it after Run.
func (s *Session) Run(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return s.run(ctx, "bash", stdin, stdout, stderr, func(sh *shell) {
		sh.commandLine = true
		sh.runScript(script, sh.name)
	})
}

// Exec is Run of a program of the machine with its arguments, which no shell reads.
func (s *Session) Exec(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	return s.run(ctx, "bash", nil, stdout, stderr, func(sh *shell) {
		defer sh.guarded()
		if len(args) > 0 {
			sh.status = sh.exec(args)
		}
	})
}

// RunFile is Run with $0 and the positional parameters.
func (s *Session) RunFile(ctx context.Context, name string, args []string, script string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return s.run(ctx, name, stdin, stdout, stderr, func(sh *shell) {
		sh.params = args
		sh.runScript(script, name)
	})
}

func (s *Session) run(ctx context.Context, name string, stdin io.Reader, stdout, stderr io.Writer, body func(*shell)) (int, error) {
	r := newRun(s.o)
	ctx, end := s.begin(ctx, r)
	defer end()
	sh := s.newShell(r, ctx)
	sh.name = name
	sh.fds = map[int]*file{0: textFile(""), 1: r.counted(stdout), 2: r.counted(stderr)}
	if stdin != nil {
		sh.fds[0] = feed(stdin)
	}
	body(sh)
	sh.end()
	err := context.Cause(ctx)
	end() // ends what is left in the background
	r.wait()
	if err != nil {
		if stderr != nil {
			_, _ = fmt.Fprintf(stderr, "%s: %v\n", name, err)
		}
		return statusKilled, err
	}
	return sh.status, nil
}

// runScript executes a text to its end. A defect of this package ends the run and not the process.
func (sh *shell) runScript(text, name string) {
	defer sh.guarded()
	file, release, err := sh.parse(text, name)
	if err != nil {
		sh.status = 2
		sh.complain(err)
		return
	}
	defer release()
	sh.stmts(file.Stmts)
}

// guarded is deferred where a goroutine begins.
func (sh *shell) guarded() {
	if problem := recover(); problem != nil {
		_, _ = fmt.Fprintf(sh.stream(2), "bash: internal error: %v\n", problem) // the run ends anyway
		_ = sh.r.kill("an internal error")
		sh.status = statusKilled
	}
}
