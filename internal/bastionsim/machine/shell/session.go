package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Session executes the commands of a user on a machine. Run may be called concurrently; each call is a shell of its
// own.
type Session struct{ o Options }

// Cred returns the credentials of the user for the file system.
func (u User) Cred() vfs.Cred { return vfs.Cred{UID: u.UID, GID: u.GID, Groups: u.Groups} }

// New returns a session. It starts nothing.
func New(o Options) *Session {
	o.User.Home, o.Limits = cmp.Or(o.User.Home, "/"), o.Limits.withDefaults()
	return &Session{o}
}

// Run executes a script or a command line, and returns its exit status. If a limit ended it, the error is a
// *LimitError; if ctx ended it, the error is the cause of ctx. The status is then 137. A script that cannot be parsed
// has status 2 and no error: the message is on stderr. Jobs that still run in the background at the end of the script
// are ended.
//
// stdin may be nil. If the script reads it, one goroutine waits in stdin.Read until that returns: close it after Run.
func (s *Session) Run(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return s.run(ctx, stdin, stdout, stderr, func(sh *shell) {
		sh.commandLine = true
		sh.runScript(script, sh.name)
	})
}

// Exec is like Run, but executes a program of the machine with its arguments, which no shell parses.
func (s *Session) Exec(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	return s.run(ctx, nil, stdout, stderr, func(sh *shell) {
		defer sh.guarded()
		if len(args) > 0 {
			sh.status = sh.exec(args)
		}
	})
}

func (s *Session) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, body func(*shell)) (int, error) {
	r := newRun(s.o)
	ctx, end := s.begin(ctx, r)
	defer end()
	sh := s.newShell(r, ctx)
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
			_, _ = fmt.Fprintf(stderr, "bash: %v\n", err)
		}
		return statusKilled, err
	}
	return sh.status, nil
}

// runScript executes a text to its end. A panic in this package ends the run and not the process.
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

// guarded ends the run after a panic. It must be deferred.
func (sh *shell) guarded() {
	if problem := recover(); problem != nil {
		_, _ = fmt.Fprintf(sh.stream(2), "bash: internal error: %v\n", problem) // the run ends anyway
		_ = sh.r.kill("an internal error")
		sh.status = statusKilled
	}
}

// treeFactor is the approximate number of bytes that the syntax tree needs for one byte of a script.
const treeFactor = 40

// entryCost is the approximate number of bytes of a variable, function or parameter in a copy that shares its value.
const entryCost = 128

// maxFrames is the maximum depth of the stack in the parser. The parser is recursive, and a stack that is too deep
// would end the whole process.
const maxFrames = 4000

var errNested = errors.New("the script nests too deeply")

// guard gives a parser its input in small pieces, and checks the depth of the stack each time.
type guard struct {
	text string
	base int
}

func (g *guard) Read(p []byte) (int, error) {
	if g.text == "" {
		return 0, io.EOF
	}
	var frame [1]uintptr
	if runtime.Callers(g.base+maxFrames, frame[:]) > 0 {
		return 0, errNested
	}
	n := copy(p[:min(len(p), 512)], g.text)
	g.text = g.text[n:]
	return n, nil
}

func newGuard(text string) *guard {
	g := &guard{text: text}
	var frame [1]uintptr
	for runtime.Callers(g.base, frame[:]) > 0 {
		g.base += 100
	}
	return g
}

// parsing calls a function with a parser, and returns a panic of the parser as an error.
func parsing(fn func(p *syntax.Parser) error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("the script cannot be read: %v", problem)
		}
	}()
	return fn(syntax.NewParser(syntax.Variant(syntax.LangBash)))
}

// parse parses a script. The memory of its syntax tree is counted until release is called.
func (sh *shell) parse(text, name string) (file *syntax.File, release func(), err error) {
	if len(text) > maxScript {
		return nil, nil, fmt.Errorf("%s: the script has %d bytes, more than %d", name, len(text), maxScript)
	}
	cost := int64(len(text)) * treeFactor
	if err := errors.Join(sh.step(1+len(text)/16), sh.r.grow(cost)); err != nil {
		return nil, nil, err
	}
	release = func() { _ = sh.r.grow(-cost) } // releasing memory never fails
	if err := parsing(func(p *syntax.Parser) (err error) {
		file, err = p.Parse(newGuard(text), name)
		return err
	}); err != nil {
		release()
		return nil, nil, errors.New(strings.TrimSpace(err.Error()))
	}
	return file, release, nil
}

// parseArithm parses an arithmetic expression, which variables may hold.
func parseArithm(text string) (expr syntax.ArithmExpr, err error) {
	err = parsing(func(p *syntax.Parser) (err error) {
		expr, err = p.Arithmetic(newGuard(text))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: syntax error in expression", text)
	}
	return expr, nil
}

// incomplete reports whether a command continues in the next line.
func incomplete(text string) bool {
	line := strings.TrimRight(text, "\n")
	if strings.HasSuffix(line, "\\") || strings.HasSuffix(line, "|") || strings.HasSuffix(line, "&&") {
		return true
	}
	return syntax.IsIncomplete(parsing(func(p *syntax.Parser) error {
		_, err := p.Parse(newGuard(text), "")
		return err
	}))
}
