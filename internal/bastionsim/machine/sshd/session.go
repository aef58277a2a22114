package sshd

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// session is a channel of type session. Requests prepare it, and one of them starts its only program.
type session struct {
	c       *connection
	channel ssh.Channel
	env     []string
	term    *Terminal
	resized chan Window
	signals chan string
	started bool
	group   sync.WaitGroup
}

func (c *connection) openSession(ctx context.Context, channel ssh.NewChannel, closed func()) {
	if c.noMoreSessions.Load() || !c.server.sessions.TryAcquire(1) {
		defer closed()
		refuse(channel, ssh.ResourceShortage, "no more sessions")
		return
	}
	accepted, requests, err := channel.Accept()
	if err != nil {
		closed()
		c.server.sessions.Release(1)
		return
	}
	s := &session{c: c, channel: accepted, signals: make(chan string, MaxSignals)}
	c.group.Go(func() {
		defer closed()
		defer c.server.sessions.Release(1)
		s.serve(ctx, requests)
	})
}

// serve answers the client's requests until the channel is closed, and then ends the program.
func (s *session) serve(ctx context.Context, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	for request := range requests {
		ok, start := s.request(request)
		_ = request.Reply(ok, nil)
		if start != nil {
			s.started = true
			s.group.Go(func() { s.run(ctx, start) })
		}
	}
	cancel()
	_ = s.channel.Close()
	s.group.Wait()
}

// program is a command, a subsystem or, if both are empty, the user's shell.
type program struct{ command, subsystem string }

// request reports whether a request is granted, and returns the program if the request starts one.
func (s *session) request(request *ssh.Request) (ok bool, start *program) {
	switch request.Type {
	case "env":
		return s.setEnv(request.Payload), nil
	case "pty-req":
		return s.setTerminal(request.Payload), nil
	case "window-change":
		return s.resize(request.Payload), nil
	case "signal":
		return s.signal(request.Payload), nil
	case "shell":
		return s.command(nil)
	case "exec":
		return s.command(request.Payload)
	case "subsystem":
		return s.subsystem(request.Payload)
	default: // x11-req, auth-agent-req@openssh.com, break, eow@openssh.com and unknown ones
		return false, nil
	}
}

// command checks an exec request, or a shell request if there is no payload.
func (s *session) command(payload []byte) (bool, *program) {
	var exec struct{ Command string }
	if s.started || payload != nil && (ssh.Unmarshal(payload, &exec) != nil || exec.Command == "") || len(exec.Command) > MaxCommandSize {
		return false, nil
	}
	return true, &program{command: exec.Command}
}

// subsystem checks a request for a subsystem of the machine. It drops the terminal, which subsystems do not use.
func (s *session) subsystem(payload []byte) (bool, *program) {
	var wanted struct{ Name string }
	if s.started || ssh.Unmarshal(payload, &wanted) != nil || !slices.Contains(s.c.server.cfg.Subsystems, wanted.Name) {
		return false, nil
	}
	s.term = nil
	s.c.server.cfg.Host.Journal(fmt.Sprintf("subsystem request for %s by user %s", wanted.Name, s.c.login.user.Name))
	return true, &program{subsystem: wanted.Name}
}

func (s *session) run(ctx context.Context, start *program) {
	stream := &activity{stream: s.channel, c: s.c}
	what := &Session{
		User: s.c.login.user, Command: start.command, Subsystem: start.subsystem, Env: s.env, Terminal: s.term,
		Stdin: stream, Stdout: stream, Stderr: &activity{stream: s.channel.Stderr(), c: s.c},
		Signals: s.signals, Remote: s.c.conn.RemoteAddr(), Local: s.c.conn.LocalAddr(), Go: s.group.Go,
	}
	if s.term != nil {
		what.Stderr = stream
	}
	exit := s.c.server.cfg.Host.Run(ctx, what)
	if exit.Signal != "" {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal            string
			Core              bool
			Message, Language string
		}{Signal: exit.Signal}))
	} else {
		_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(exit.Status) & 0xff}))
	}
	_ = s.channel.Close()
}

// setEnv accepts variables for languages and terminals. Other variables could change what programs do.
func (s *session) setEnv(payload []byte) bool {
	var env struct{ Name, Value string }
	if s.started || len(s.env) >= MaxEnv || ssh.Unmarshal(payload, &env) != nil || len(env.Name)+len(env.Value) > MaxEnvSize {
		return false
	}
	if !knownVariable.MatchString(env.Name) || strings.ContainsAny(env.Value, "\x00\n") {
		return false
	}
	s.env = append(s.env, env.Name+"="+env.Value)
	return true
}

var knownVariable = regexp.MustCompile(`^(LANG|TERM|LC_\w*)$`)

// ptyRequest is the message of RFC 4254, section 6.2. Sizes in pixels and modes are ignored.
type ptyRequest struct {
	Term                         string
	Columns, Rows, Width, Height uint32
	Modes                        string
}

func (s *session) setTerminal(payload []byte) bool {
	var pty ptyRequest
	if s.started || s.term != nil || s.c.login.noPTY || ssh.Unmarshal(payload, &pty) != nil || len(pty.Term) > MaxTermSize {
		return false
	}
	s.resized = make(chan Window, 1)
	s.term = &Terminal{Name: strings.TrimFunc(pty.Term, notPrintable), Window: window(pty.Columns, pty.Rows), Resized: s.resized}
	return true
}

// window converts the size that a client reports to a size that programs can work with.
func window(columns, rows uint32) Window {
	if columns == 0 || rows == 0 {
		return Window{Columns: 80, Rows: 24}
	}
	return Window{Columns: int(min(columns, MaxWindow)), Rows: int(min(rows, MaxWindow))}
}

func (s *session) resize(payload []byte) bool {
	var size struct{ Columns, Rows, Width, Height uint32 }
	if s.term == nil || ssh.Unmarshal(payload, &size) != nil {
		return false
	}
	if !s.started {
		s.term.Window = window(size.Columns, size.Rows)
		return true
	}
	select {
	case <-s.resized: // the command has not read the size before
	default:
	}
	s.resized <- window(size.Columns, size.Rows)
	return true
}

// signals are the names of signals in RFC 4254, section 6.10.
var signals = []string{"ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2"}

func (s *session) signal(payload []byte) bool {
	var signal struct{ Name string }
	if !s.started || ssh.Unmarshal(payload, &signal) != nil || !slices.Contains(signals, signal.Name) {
		return false
	}
	select {
	case s.signals <- signal.Name:
	default:
	}
	return true
}
