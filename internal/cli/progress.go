package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/terminal"
)

// progressMessage is a message of the process in the background to the process that started it, one line of JSON
// each.
type progressMessage struct {
	Event *control.Event `json:"event,omitempty"`
	Ready time.Duration  `json:"ready,omitempty"`
	Error string         `json:"error,omitempty"`
}

// progress shows the progress of a start: on a terminal in one line that is redrawn, otherwise in a line for each
// step.
type progress struct {
	mu     sync.Mutex
	out    io.Writer
	pipe   *os.File
	live   bool
	colour bool
	// columns returns the current width of the terminal.
	columns func() int
	closed  chan struct{}
	ended   chan struct{}
	title   string
	// saying is the current step, which is shown behind the title.
	saying string
	begun  time.Time
}

func newProgress(g *globals, fd int) *progress {
	p := &progress{out: g.err, closed: make(chan struct{})}
	if fd > 0 {
		p.out, p.pipe = io.Discard, os.NewFile(uintptr(fd), "progress")
		return p
	}
	if file, ok := g.err.(*os.File); ok && terminal.Is(file) && !g.verbose {
		p.live, p.colour = os.Getenv("TERM") != "dumb", g.hasColours(file)
		p.columns = func() int { return terminal.Columns(file) }
	}
	return p
}

func (p *progress) begin(title string) {
	p.title, p.begun = plain(title), time.Now()
	if !p.live {
		fmt.Fprintln(p.out, p.title)
		return
	}
	p.ended = make(chan struct{})
	go p.animate()
}

// animate redraws the live line until close is called.
func (p *progress) animate() {
	defer close(p.ended)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for frame := 0; ; frame++ {
		p.mu.Lock()
		fmt.Fprint(p.out, "\r\033[K"+p.frame(frame, time.Since(p.begun).Truncate(100*time.Millisecond)))
		p.mu.Unlock()
		select {
		case <-p.closed:
			p.mu.Lock()
			fmt.Fprint(p.out, "\r\033[K")
			p.mu.Unlock()
			return
		case <-ticker.C:
		}
	}
}

// frame returns the live line. It is shorter than the terminal is wide, because a line that wraps cannot be redrawn:
// the end of the current step is cut, not the time.
func (p *progress) frame(n int, elapsed time.Duration) string {
	took := " " + span(elapsed)
	// The spinner and the space behind it take two columns, and the last column stays free.
	text := terminal.Cut(p.title+p.saying, p.columns()-len(took)-3)
	return terminal.Cut(fmt.Sprintf("%c %s%s", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[n%10], text, took), p.columns()-1)
}

// event prints a step of the start. The time comes first, so that lines are aligned whatever is named in them.
func (p *progress) event(event control.Event) {
	p.send(progressMessage{Event: &event})
	p.line(fmt.Sprintf("%6s  %s", span(event.Took), event.Name))
}

func (p *progress) ready(took time.Duration) {
	p.send(progressMessage{Ready: took})
	p.close()
	p.line("Ready after " + span(took))
}

func (p *progress) fail(err error) {
	p.send(progressMessage{Error: err.Error()})
	p.close()
}

// line prints a step that is done.
func (p *progress) line(text string) {
	text = plain(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	start, mark := "", "✔"
	if p.colour {
		mark = "\033[32m✔\033[0m"
	}
	if p.live {
		start = "\r\033[K"
	}
	fmt.Fprintf(p.out, "%s%s %s\n", start, mark, text)
}

// above prints something else than a step, above the live line if there is one.
func (p *progress) above(out io.Writer, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		fmt.Fprint(p.out, "\r\033[K")
	}
	printf(out, format, args...)
}

// say shows the current step: behind the title of the live line or, without one, in a line of its own.
func (p *progress) say(text string) {
	text = plain(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.saying = " – " + text
		return
	}
	fmt.Fprintln(p.out, "  "+text)
}

func (p *progress) send(message progressMessage) {
	if p.pipe == nil {
		return
	}
	// The parent process may have ended; the landscape runs on.
	_ = json.NewEncoder(p.pipe).Encode(message)
}

// close ends the live line. It can be called more than once.
func (p *progress) close() {
	select {
	case <-p.closed:
		return
	default:
		close(p.closed)
	}
	if p.ended != nil {
		<-p.ended
	}
	if p.pipe != nil {
		_ = p.pipe.Close()
	}
}

// waitFor calls wait with a timeout, and shows what it reports.
func waitFor(ctx context.Context, g *globals, timeout time.Duration, title string, wait func(context.Context, func(string)) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newProgress(g, 0)
	progress.begin(title)
	defer progress.close()
	err := wait(ctx, func(text string) { progress.say(firstLine(text)) })
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not within %s (--timeout): %w", timeout, err)
	}
	return err
}
