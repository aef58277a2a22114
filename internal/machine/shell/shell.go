package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
	"k8s.io/utils/clock"
)

// Config is what a shell has and sees; there is nothing else for it.
type Config struct {
	FS       *vfs.FS
	Cred     vfs.Cred
	Commands map[string]Command
	// Env is the whole environment as NAME=value.
	Env []string
	// Dir is the working directory, / if it is empty or missing.
	Dir string
	// Name is $0, Args are the positional parameters.
	Name string
	Args []string
	// Stdin is read only when something reads it. Whoever gives one that can block closes it in the end.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal says that the three are a terminal.
	Terminal bool
	Limits   Limits
	// Clock is the machine's, for sleep and time.
	Clock clock.Clock
	// Home says where a user's home is, for ~user.
	Home func(user string) (string, bool)
	// NextPID numbers processes.
	NextPID func() int
}

// Command is a program of the machine. It returns its exit status.
type Command func(*Invocation) int

// Invocation is one run of a program.
type Invocation struct {
	Ctx context.Context
	// Args with the program's name first.
	Args           []string
	Env            []string
	Dir            string
	Cred           vfs.Cred
	FS             vfs.View
	Umask          int
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool
	PID            int
	Clock          clock.Clock
	// MaxText is the longest text that the program may hold, in bytes.
	MaxText int

	p *proc
}

// Abs is path as seen from the working directory.
func (in *Invocation) Abs(path string) string { return in.p.abs(path) }

// Root is the file system as root sees it, for programs that decide about rights, such as sudo.
func (in *Invocation) Root() vfs.View { return in.p.s.cfg.FS.As(vfs.Root) }

// Getenv looks an environment variable up.
func (in *Invocation) Getenv(name string) string {
	for i := len(in.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(in.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Run runs another program as this one's child, as cred and with env.
func (in *Invocation) Run(cred vfs.Cred, env []string, stdin io.Reader, stdout io.Writer, args ...string) int {
	child, err := in.p.fork()
	if err != nil {
		return 126
	}
	defer child.end()
	child.cred, child.name = cred, args[0]
	child.replaceEnv(env)
	child.fds = map[int]stream{0: {r: stdin}, 1: {w: stdout}, 2: {w: in.Stderr}}
	if err := child.exec(args); err != nil {
		return child.finish(err)
	}
	return child.status
}

// Shell is a shell and its state from one Run to the next. It is not safe for concurrent use.
type Shell struct {
	cfg     Config
	started time.Time
	memory  atomic.Int64
	current *budget
	top     *proc
	jobs    sync.WaitGroup
	exited  bool
	keep    []func()
}

// New makes a shell.
func New(cfg Config) *Shell {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Stdin == nil {
		cfg.Stdin = strings.NewReader("")
	}
	if cfg.NextPID == nil {
		var last atomic.Int64
		cfg.NextPID = func() int { return int(last.Add(1)) + 999 }
	}
	set(&cfg.Name, "bash")
	cfg.Limits = cfg.Limits.orDefault()
	s := &Shell{cfg: cfg, started: cfg.Clock.Now(), current: unlimited}
	pid := cfg.NextPID()
	s.top = &proc{
		s: s, cred: cfg.Cred, name: cfg.Name, params: cfg.Args, pid: pid, shellPID: pid, umask: 0o022,
		vars: map[string]*variable{}, funcs: map[string]function{},
	}
	s.top.fds = map[int]stream{0: {r: newInput(cfg.Stdin, func() *budget { return s.current }), tty: cfg.Terminal}}
	s.top.dir = "/"
	if info, err := s.top.view().Stat(cfg.Dir); err == nil && info.IsDir() && strings.HasPrefix(cfg.Dir, "/") {
		s.top.dir = cfg.Dir
	}
	s.top.replaceEnv(cfg.Env)
	return s
}

// Run runs a script or a command line. The error is nil unless the script was stopped: by a limit, by ctx, or by itself
// being no shell script; what a script's own commands do wrong is in the status.
func (s *Shell) Run(ctx context.Context, src string) (status int, err error) {
	if s.exited {
		return s.top.status, nil
	}
	b := s.begin(ctx)
	defer b.cancel(nil)
	p := s.top
	p.fds[1] = stream{w: limitedWriter{b, orDiscard(s.cfg.Stdout)}, tty: s.cfg.Terminal}
	p.fds[2] = stream{w: limitedWriter{b, orDiscard(s.cfg.Stderr)}, tty: s.cfg.Terminal}
	status, err = s.run(b, src)
	if stop := b.err(); stop != nil && err == nil {
		status, err = 137, stop
	}
	// Background jobs end with the command line that started them, so that nothing runs that no limit counts.
	b.cancel(errEnded)
	s.jobs.Wait()
	return status, err
}

var errEnded = errors.New("the shell has ended")

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (s *Shell) begin(ctx context.Context) *budget {
	b := &budget{limits: s.cfg.Limits, memory: &s.memory}
	ctx, cancel := context.WithCancelCause(ctx)
	b.ctx, b.cancel = ctx, cancel
	if b.limits.Time > 0 {
		timer := time.AfterFunc(b.limits.Time, func() { cancel(ErrTime) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	s.current = b
	return b
}

func (s *Shell) run(b *budget, src string) (status int, err error) {
	defer func() {
		if b.err() != nil {
			status, err = 137, b.err()
		}
	}()
	defer b.internal()
	p := s.top
	file, release, err := b.parse(src, p.name)
	if err != nil {
		if b.err() == nil {
			p.errf("%s: %v", p.name, err)
			err = nil
		}
		p.status = 2
		return 2, err
	}
	// Functions keep the code alive.
	before := len(p.funcs)
	err = p.stmts(file.Stmts)
	if len(p.funcs) == before {
		release()
	}
	var exit *exiting
	s.exited = errors.As(err, &exit)
	p.finish(err)
	if s.exited {
		p.trapExit()
	}
	return p.status, b.err()
}

// Close runs the EXIT trap of a shell that ends without exit.
func (s *Shell) Close(ctx context.Context) (int, error) {
	if s.exited || s.top.traps["EXIT"] == "" {
		return s.top.status, nil
	}
	return s.Run(ctx, "exit $?")
}

// Exited says whether the script has called exit.
func (s *Shell) Exited() bool { return s.exited }

// Dir is the working directory.
func (s *Shell) Dir() string { return s.top.dir }

// Getenv looks up a variable of the shell.
func (s *Shell) Getenv(name string) string { return s.top.getOr(name, "") }

// Incomplete says whether a command line goes on in the next one: an open quote, block or here-document.
func Incomplete(src string) bool { return incomplete(src) }
