package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// console stands between a terminal and its reader: the line editor while there is a prompt, a command while one
// runs. One goroutine reads the terminal all the time, so that Ctrl-C is seen while a command runs.
type console struct {
	tty TTY
	raw *file // for the line editor
	in  *file

	mu      sync.Mutex
	changed *sync.Cond
	editing bool               // the line editor reads; false after a line's end until it is known who reads next
	running context.CancelFunc // of the command that runs, or nil
	stdin   *file              // that command's input: whole lines

	ended bool // nothing comes from the terminal any more

	keys keys   // of pump alone, for the line editor
	line []byte // of pump alone: what was typed for the command whose input is last
	last *file
	end  context.CancelFunc
}

// Interactive serves a terminal until the user leaves with exit or Ctrl-D, the terminal ends or ctx does. It returns
// the last status. Each line has the limits anew, and so has the time of each job that it leaves in the background.
// Ctrl-C ends the command that runs. When it has returned, the caller closes the terminal, which ends the one
// goroutine that reads it.
func (s *Session) Interactive(ctx context.Context, tty TTY) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	editor, toEditor := newPipe()
	c := &console{tty: tty, raw: toEditor, in: editor, end: cancel}
	c.changed = sync.NewCond(&c.mu)
	context.AfterFunc(ctx, func() { c.change(func() {}) }) // ctx ends with this function at the latest
	defer editor.close()
	go c.pump(ctx)

	r := newRun(s.o)
	sh := s.newShell(r, ctx)
	sh.interactive, sh.base = true, ctx
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&stream{sh: sh, file: editor}, tty}, "")
	out := r.counted(&newlines{tty: tty})
	out.tty = true
	sh.fds = map[int]*file{1: out, 2: out.dup()}
	defer func() {
		sh.end()
		cancel()
		r.wait()
	}()
	for ctx.Err() == nil && sh.flow != exiting {
		text, err := c.read(t, sh)
		if err != nil {
			break
		}
		c.execute(ctx, sh, text)
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return sh.status & 0xff, err
	}
	return sh.status & 0xff, nil // another end is one that the user or the terminal made
}

// newlines writes lines as a terminal wants them.
type newlines struct{ tty TTY }

var lineEnds = strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")

func (n *newlines) Write(p []byte) (int, error) {
	if _, err := lineEnds.WriteString(n.tty, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// prompt is user@host:dir$.
func (sh *shell) prompt() string {
	sign := "$"
	if sh.user.UID == 0 {
		sign = "#"
	}
	return fmt.Sprintf("%s@%s:%s%s ", sh.user.Name, sh.s.o.System.Hostname(), sh.withTilde(sh.dir), sign)
}

// read is a command, which may have several lines.
func (c *console) read(t *term.Terminal, sh *shell) (string, error) {
	text := ""
	t.SetPrompt(sh.prompt())
	for {
		if w, h := c.tty.Size(); w > 0 && h > 0 {
			if err := t.SetSize(w, h); err != nil {
				return "", err
			}
		}
		c.change(func() { c.editing = true })
		line, err := t.ReadLine()
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return "", err
		}
		if text += line + "\n"; len(text) > sh.r.limits.Script {
			return "", errNested
		}
		if !incomplete(text) || line == "" {
			return text, nil
		}
		t.SetPrompt("> ")
	}
}

// execute runs one command with a terminal.
func (c *console) execute(ctx context.Context, sh *shell, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	lineCtx, end := sh.s.begin(ctx, sh.r)
	defer end()
	var stop context.CancelFunc
	sh.ctx, stop = context.WithCancel(lineCtx)
	defer stop()
	sh.stopErr, sh.err, sh.depth, sh.progress = nil, nil, 0, progress{}
	reader, writer := newPipe()
	reader.tty = true
	sh.replace(0, reader)
	c.change(func() {
		c.running, c.stdin, c.editing = stop, writer, false
		if c.ended {
			writer.close()
		}
	})
	sh.runScript(text, "bash")
	c.change(func() { c.running, c.stdin = nil, nil })
	writer.close()
	if err := context.Cause(lineCtx); err != nil {
		_, _ = fmt.Fprintf(c.tty, "bash: %v\r\n", err)
		sh.status = statusKilled
	} else if sh.ctx.Err() != nil {
		_, _ = io.WriteString(c.tty, "\r\n")
		sh.status = 130
	}
	sh.ctx, sh.stopErr = ctx, nil
}

// change changes what pump waits for.
func (c *console) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
	c.changed.Broadcast()
}

// pump reads the terminal until it ends. A terminal that fails ends everything.
func (c *console) pump(ctx context.Context) {
	defer c.raw.close()
	buf := make([]byte, 1024)
	for {
		n, err := c.tty.Read(buf)
		for _, b := range buf[:n] {
			if !c.key(ctx, b) {
				c.end()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			// As that of a client does which reads a file: what runs continues, and reads the end of its input.
			c.change(func() {
				if c.ended = true; c.stdin != nil {
					c.stdin.close()
				}
			})
			return
		case err != nil:
			c.end()
			return
		}
	}
}

// key gives a byte to whom it is for.
func (c *console) key(ctx context.Context, b byte) bool {
	c.mu.Lock()
	for c.running == nil && !c.editing && ctx.Err() == nil {
		c.changed.Wait()
	}
	running, stdin := c.running, c.stdin
	if running == nil && (b == '\r' || b == 3) {
		c.editing = false
	}
	c.mu.Unlock()
	if running == nil {
		_, err := c.raw.writer(ctx, c.keys.next(b))
		return err == nil
	}
	if stdin != c.last {
		c.line, c.last = nil, stdin
	}
	var echo, input []byte
	switch {
	case b == 3:
		echo = []byte("^C")
		running()
	case b == 4 && len(c.line) == 0:
		stdin.close()
	case b == 4:
		input, c.line = c.line, nil
	case b == '\r' || b == '\n':
		echo = []byte("\r\n")
		input, c.line = append(c.line, '\n'), nil
	case (b == 127 || b == 8) && len(c.line) > 0:
		echo, c.line = []byte("\b \b"), c.line[:len(c.line)-1]
	case b >= 32 && b != 127 && len(c.line) < 4096:
		echo, c.line = []byte{b}, append(c.line, b)
	}
	_, _ = c.tty.Write(echo) // a terminal that is gone fails to be read too
	if len(input) > 0 {
		full, cancel := context.WithCancel(ctx)
		cancel() // what does not fit is lost: a command that reads nothing must not keep Ctrl-C from being seen
		_, _ = stdin.writer(full, input)
	}
	return true
}

// maxSequence is how long a sequence of a key may be: more than any has.
const maxSequence = 32

// keys stands before the line editor of golang.org/x/term, which waits for the end of all that looks like the start
// of a key, and takes all that comes until then for a part of it. So it gets whole characters and ended sequences.
type keys struct {
	begun []byte // of a sequence or a character
}

// next is what the line editor is given for a byte that was typed.
func (k *keys) next(b byte) []byte {
	const escape, interrupt = 27, 3
	inSequence := len(k.begun) > 0 && k.begun[0] == escape
	if b < ' ' || b == 127 || (b >= utf8.RuneSelf) == inSequence { // what has begun does not end
		k.begun = nil
	}
	k.begun = append(k.begun, b)
	typed := k.begun
	switch first := typed[0]; {
	case b == interrupt: // what is pasted ends, to the end of the line, delete it, begin a new one
		typed = []byte("\x1b[201~\x05\x15\r")
	case first == escape && len(typed) == maxSequence:
		typed = nil
	case first == escape && b != '~' && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z'), !utf8.FullRune(typed):
		return nil
	case first >= utf8.RuneSelf:
		if r, _ := utf8.DecodeRune(typed); r == utf8.RuneError {
			typed = nil
		}
	}
	k.begun = nil
	return typed
}
