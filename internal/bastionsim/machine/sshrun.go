package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
)

// sshRun is a running SSH session.
type sshRun struct {
	*sshd.Session
	// feed receives the client's input; the session reads the other end.
	feed *io.PipeWriter
	// kill ends the session as a signal does.
	kill func(signal string)
}

// run runs what the client asked for, and returns its status. An error means that it did not end by itself.
func (r *sshRun) run(ctx context.Context, session *shell.Session, input *io.PipeReader) (int, error) {
	switch {
	case r.Terminal != nil && r.Command == "":
		r.Go(r.pass)
		return session.Interactive(ctx, &terminal{Reader: input, Writer: r.Stdout, t: r.Terminal, size: r.Terminal.Window})
	case r.Terminal != nil:
		out := &crlfWriter{w: r.Stdout}
		d := &discipline{feed: r.feed, echo: out, interrupt: func() { r.kill("INT") }}
		r.Go(func() { d.follow(r.Stdin) })
		return session.Run(ctx, r.Command, input, out, out)
	case r.Command != "":
		r.Go(r.pass)
		return session.Run(ctx, r.Command, input, r.Stdout, r.Stderr)
	default:
		r.Go(r.pass)
		script, err := io.ReadAll(io.LimitReader(input, maxScript+1))
		if err != nil {
			return 1, err
		}
		if len(script) > maxScript {
			return 1, fmt.Errorf("the script is longer than %d bytes", maxScript)
		}
		return session.Run(ctx, string(script), nil, r.Stdout, r.Stderr)
	}
}

// pass copies the client's input to the session as it is.
func (r *sshRun) pass() {
	_, err := io.Copy(r.feed, r.Stdin)
	_ = r.feed.CloseWithError(err)
}

// told returns the status of a session, and writes its error to the client. The shell has already written that of a
// limit.
func (r *sshRun) told(status int, err error) int {
	var limit *shell.LimitError
	if err == nil || errors.As(err, &limit) || errors.Is(err, context.Canceled) {
		return status
	}
	end := "\n"
	if r.Terminal != nil {
		end = "\r\n"
	}
	_, _ = io.WriteString(r.Stderr, "session ended: "+err.Error()+end)
	return max(status, 1)
}

// followSignals handles the client's signals: INT interrupts an interactive shell as Ctrl-C does, other signals end the
// session. The returned function waits until the handler has ended, which it does with ctx.
func (r *sshRun) followSignals(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case signal := <-r.Signals:
				switch {
				case signal == "INT" && r.Terminal != nil && r.Command == "":
					_, _ = r.feed.Write([]byte{ctrlC}) // returns at the latest when the session has ended
				case signal == "USR1", signal == "USR2", signal == "PIPE", signal == "ALRM":
				default:
					r.kill(signal)
				}
			}
		}
	})
	return group.Wait
}

// terminal is the terminal of an interactive shell.
type terminal struct {
	io.Reader
	io.Writer
	t *sshd.Terminal

	mu   sync.Mutex
	size sshd.Window
}

// Size returns the size that the client reported last.
func (t *terminal) Size() (columns, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.size = <-t.t.Resized:
	default:
	}
	return t.size.Columns, t.size.Rows
}

// Keys that a terminal acts on.
const (
	ctrlC     = 3
	ctrlD     = 4
	ctrlU     = 21
	backspace = 8
	deleteKey = 127
)

// maxTyped is the maximum length of a line that is typed for a command.
const maxTyped = 4 << 10

// discipline is the line discipline of a terminal in which a command runs: it echoes keys, allows lines to be edited,
// and passes each line to the command when it is complete.
type discipline struct {
	feed      *io.PipeWriter
	echo      io.Writer
	interrupt func()
	line      []byte
}

// follow reads what is typed until the client or the command ends.
func (d *discipline) follow(typed io.Reader) {
	buffer := make([]byte, 512)
	for {
		n, err := typed.Read(buffer)
		for _, key := range buffer[:n] {
			if !d.key(key) {
				_ = d.feed.Close()
				_, _ = io.Copy(io.Discard, typed)
				return
			}
		}
		if err != nil {
			_ = d.feed.CloseWithError(err)
			return
		}
	}
}

// key handles one byte. It returns false at the end of the input.
func (d *discipline) key(key byte) bool {
	var err error
	switch key {
	case ctrlC:
		_, _ = io.WriteString(d.echo, "^C\n")
		d.interrupt()
		return false
	case ctrlD:
		if len(d.line) == 0 {
			return false
		}
		err = d.give()
	case backspace, deleteKey:
		if len(d.line) > 0 {
			d.line = d.line[:len(d.line)-1]
			_, err = io.WriteString(d.echo, "\b \b")
		}
	case ctrlU:
		for range d.line {
			_, _ = io.WriteString(d.echo, "\b \b")
		}
		d.line = d.line[:0]
	case '\r', '\n':
		_, _ = io.WriteString(d.echo, "\n")
		d.line = append(d.line, '\n')
		err = d.give()
	default:
		if len(d.line) < maxTyped {
			d.line = append(d.line, key)
			_, err = d.echo.Write([]byte{key})
		}
	}
	return err == nil
}

func (d *discipline) give() error {
	line := d.line
	d.line = nil
	_, err := d.feed.Write(line)
	return err
}

// crlfWriter ends lines as a terminal needs it. Output and echo are written concurrently.
type crlfWriter struct {
	w  io.Writer
	mu sync.Mutex
}

func (c *crlfWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]byte, 0, len(p)+16)
	for _, b := range p {
		if b == '\n' {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
