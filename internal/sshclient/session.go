package sshclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

// ErrConnectionLost means that a session ended without an exit status.
var ErrConnectionLost = errors.New("the connection was lost")

// Session is a command or a shell to run on the node.
type Session struct {
	In       io.Reader
	Out, Err io.Writer
	// Command is the command to run; a shell if it is empty.
	Command string
	// TTY asks for a terminal even for a command. A shell gets one if In is a terminal.
	TTY bool
}

// Run runs a session and returns its exit status: 128 and the number of the signal if one ended it.
func (t *Tunnel) Run(ctx context.Context, s Session) (int, error) {
	session, err := t.node.NewSession()
	if err != nil {
		return 0, fmt.Errorf("opening a session on the node %s: %w", t.route.Node.Name, err)
	}
	defer session.Close()
	session.Stdin, session.Stdout, session.Stderr = s.In, s.Out, s.Err
	if file, ok := s.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) && (s.TTY || s.Command == "") {
		restore, err := terminal(session, file)
		if err != nil {
			return 0, err
		}
		defer restore()
	}
	if s.Command == "" {
		err = session.Shell()
	} else {
		err = session.Start(s.Command)
	}
	if err != nil {
		return 0, fmt.Errorf("starting on the node %s: %w", t.route.Node.Name, err)
	}
	return status(ctx, session.Wait())
}

func status(ctx context.Context, err error) (int, error) {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, fmt.Errorf("%w: the bastion has expired or was deleted, or the machine has stopped (%w)", ErrConnectionLost, err)
}

// terminal connects a session to the user's terminal, which is in raw mode until restore is called. Changes of the
// window's size are passed on.
func terminal(session *ssh.Session, file *os.File) (restore func(), err error) {
	fd := int(file.Fd())
	width, height, err := term.GetSize(fd)
	if err != nil {
		width, height = 80, 24
	}
	modes := ssh.TerminalModes{ssh.ECHO: 1, ssh.TTY_OP_ISPEED: 38400, ssh.TTY_OP_OSPEED: 38400}
	if err := session.RequestPty(cmp.Or(os.Getenv("TERM"), "xterm"), height, width, modes); err != nil {
		return nil, fmt.Errorf("asking for a terminal: %w", err)
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("taking the terminal: %w", err)
	}
	resized, ended, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(resized, syscall.SIGWINCH)
	go func() {
		defer close(done)
		for {
			select {
			case <-ended:
				return
			case <-resized:
				if width, height, err := term.GetSize(fd); err == nil {
					_ = session.WindowChange(height, width)
				}
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		close(ended)
		_ = term.Restore(fd, before)
		<-done
	}, nil
}
