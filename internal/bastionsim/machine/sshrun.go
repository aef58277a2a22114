package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
)

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
		out := shell.NewlineWriter{Terminal: r.Stdout}
		r.Go(func() { r.passLines(out) })
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

func (r *sshRun) pass() {
	_, err := io.Copy(r.feed, r.Stdin)
	_ = r.feed.CloseWithError(err)
}

// passLines copies what is typed in a terminal to the command, line by line, until the client or the command ends.
func (r *sshRun) passLines(echo io.Writer) {
	var line shell.LineDiscipline
	keys := bufio.NewReader(r.Stdin)
	for {
		key, err := keys.ReadByte()
		if err != nil {
			_ = r.feed.CloseWithError(err)
			return
		}
		shown, input, ended := line.Key(key)
		_, err = io.WriteString(echo, shown)
		if key == shell.CtrlC {
			_, _ = io.WriteString(echo, "\n")
			r.kill("INT")
			ended = true
		}
		if err == nil && len(input) > 0 {
			_, err = r.feed.Write(input)
		}
		if ended || err != nil {
			_ = r.feed.Close()
			_, _ = io.Copy(io.Discard, keys)
			return
		}
	}
}

// statusOf returns the status of a session, and writes its error to the client. The shell has already written that of a
// limit.
func (r *sshRun) statusOf(status int, err error) int {
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
					_, _ = r.feed.Write([]byte{shell.CtrlC}) // returns at the latest when the session has ended
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
