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

// console connects a terminal to its reader: the line editor at the prompt, or a running command. One goroutine reads
// the terminal all the time, so that Ctrl-C is noticed while a command runs.
type console struct {
	tty TTY
	raw *file // for the line editor
	in  *file

	mu      sync.Mutex
	changed *sync.Cond
	editing bool               // the line editor reads; false after the end of a line until the next reader is known
	running context.CancelFunc // of the command that runs, or nil
	stdin   *file              // that command's input: whole lines

	ended bool // the terminal's input has ended

	keys keys           // of pump only, for the line editor
	line LineDiscipline // of pump only, for the command whose input is last
	last *file
	end  context.CancelFunc
}

// Interactive serves a terminal until the user leaves with exit or Ctrl-D, the terminal's input ends, or ctx is done.
// It returns the last status. Each line has new limits, and each job that a line leaves in the background has the time
// limit of a line. Ctrl-C ends the running command. When Interactive has returned, the caller must close the terminal,
// which ends the goroutine that reads it.
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
	out := r.counted(NewlineWriter{tty})
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
	return sh.status & 0xff, nil // the user or the terminal ended the session
}

// NewlineWriter writes lines with the ends that a terminal needs.
type NewlineWriter struct{ Terminal io.Writer }

var lineEnds = strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")

func (w NewlineWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Terminal, lineEnds.Replace(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CtrlC is the key that interrupts a command.
const CtrlC = 3

// maxTyped is the maximum length of a line that is typed for a command.
const maxTyped = 4 << 10

// LineDiscipline is the line discipline of a terminal in which a command runs: it echoes keys, allows a line to be
// edited, and passes it to the command when it is complete.
type LineDiscipline struct{ line []byte }

// Key handles a byte that is typed. It returns what the terminal shows and what the command reads; ended is true at the
// end of its input.
func (d *LineDiscipline) Key(key byte) (echo string, input []byte, ended bool) {
	const ctrlD, ctrlU, backspace, deleteKey = 4, 21, 8, 127
	switch key {
	case CtrlC:
		echo = "^C"
	case ctrlD:
		ended = len(d.line) == 0
		input, d.line = d.line, nil
	case '\r', '\n':
		echo = "\n"
		input, d.line = append(d.line, '\n'), nil
	case backspace, deleteKey, ctrlU:
		erased := min(len(d.line), 1)
		if key == ctrlU {
			erased = len(d.line)
		}
		echo, d.line = strings.Repeat("\b \b", erased), d.line[:len(d.line)-erased]
	default:
		if (key >= ' ' || key == '\t') && len(d.line) < maxTyped {
			echo, d.line = string([]byte{key}), append(d.line, key)
		}
	}
	return echo, input, ended
}

func (sh *shell) prompt() string {
	sign := "$"
	if sh.user.UID == 0 {
		sign = "#"
	}
	return fmt.Sprintf("%s@%s:%s%s ", sh.user.Name, sh.s.o.System.Hostname(), sh.withTilde(sh.dir), sign)
}

// read reads a command, which may have several lines.
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
		if text += line + "\n"; len(text) > maxScript {
			return "", errNested
		}
		if !incomplete(text) || line == "" {
			return text, nil
		}
		t.SetPrompt("> ")
	}
}

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

// change changes the state that pump waits for.
func (c *console) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
	c.changed.Broadcast()
}

// pump reads the terminal until its input ends. If reading fails, it ends the session.
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
			// Like the client's input from a file: the running command continues, and reads the end of its input.
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

// key passes a byte to its reader. It returns false if the line editor has gone.
func (c *console) key(ctx context.Context, b byte) bool {
	c.mu.Lock()
	for c.running == nil && !c.editing && ctx.Err() == nil {
		c.changed.Wait()
	}
	running, stdin := c.running, c.stdin
	if running == nil && (b == '\r' || b == CtrlC) {
		c.editing = false
	}
	c.mu.Unlock()
	if running == nil {
		_, err := c.raw.writer(ctx, c.keys.next(b))
		return err == nil
	}
	if stdin != c.last {
		c.line, c.last = LineDiscipline{}, stdin
	}
	echo, input, ended := c.line.Key(b)
	switch {
	case b == CtrlC:
		running()
	case ended:
		stdin.close()
	}
	_, _ = io.WriteString(NewlineWriter{c.tty}, echo) // a terminal that is gone fails to be read as well
	if len(input) > 0 {
		full, cancel := context.WithCancel(ctx)
		cancel() // what does not fit is lost: a command that reads nothing must not keep Ctrl-C from being seen
		_, _ = stdin.writer(full, input)
	}
	return true
}

// maxSequence is the maximum length of the sequence of a key, which is longer than any real one.
const maxSequence = 32

// keys filters the input of the line editor of golang.org/x/term. The editor waits for the end of anything that looks
// like the start of a key, and takes everything until then as a part of it. So keys passes on only whole characters and
// sequences.
type keys struct {
	begun []byte // an incomplete sequence or character
}

// next returns the input for the line editor when a byte is typed.
func (k *keys) next(b byte) []byte {
	const escape = 27
	inSequence := len(k.begun) > 0 && k.begun[0] == escape
	if b < ' ' || b == 127 || (b >= utf8.RuneSelf) == inSequence { // the sequence or character stays incomplete
		k.begun = nil
	}
	k.begun = append(k.begun, b)
	typed := k.begun
	switch first := typed[0]; {
	case b == CtrlC: // end of paste, end of line, delete the line, begin a new one
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
