package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gardenlite/gardenlite/internal/control"
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
	closed chan struct{}
	ended  chan struct{}
	title  string
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
	if file, ok := g.err.(*os.File); ok && term.IsTerminal(int(file.Fd())) && !g.verbose {
		p.live = os.Getenv("TERM") != "dumb"
		p.colour = p.live && !g.noColor && os.Getenv("NO_COLOR") == ""
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
		fmt.Fprintf(p.out, "\r\033[K%c %s %.1fs", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[frame%10], p.title+p.saying, time.Since(p.begun).Seconds())
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

func (p *progress) event(event control.Event) {
	p.send(progressMessage{Event: &event})
	p.line(fmt.Sprintf("%-36s %8s", event.Name, event.Took.Round(time.Millisecond)))
}

func (p *progress) ready(took time.Duration) {
	p.send(progressMessage{Ready: took})
	p.close()
	p.line(fmt.Sprintf("Ready after %.1fs", took.Seconds()))
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
