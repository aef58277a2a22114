package webhook

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// browser is a headless Chromium with one page open, driven by the DevTools protocol.
type browser struct {
	*testing.T
	conn    *websocket.Conn
	session string
	nextID  int
	// complaints are uncaught exceptions, and errors that the browser has logged, such as violations of the policy.
	complaints []string
	loaded     int
}

// startBrowser starts Chromium, or skips the test if it is not installed.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium found in PATH: install it (Debian: apt-get install chromium) to test the page as a person uses it")
	}
	profile, err := os.MkdirTemp("", "gardenlite-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	// The deadline must outlive the test's own context, which ends before Chromium is told to close.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	command := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--remote-allow-origins=http://127.0.0.1", "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--ignore-certificate-errors",
		"--window-size=1400,1000", "--remote-debugging-port=0", "--user-data-dir="+profile, "about:blank")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		cancel()
		t.Skipf("%s does not start: %v", path, err)
	}
	b := &browser{T: t}
	silent := make(chan struct{})
	t.Cleanup(func() {
		if b.conn != nil {
			_ = websocket.JSON.Send(b.conn, map[string]any{"id": -1, "method": "Browser.close"})
			_ = b.conn.Close()
		} else {
			cancel()
		}
		<-silent           // all processes have ended, or the deadline has killed them
		_ = command.Wait() // its exit status does not matter
		cancel()
		if err := os.RemoveAll(profile); err != nil {
			t.Logf("removing the profile of Chromium: %v", err)
		}
	})
	var said strings.Builder
	lines := bufio.NewScanner(stderr)
	address := ""
	for address == "" {
		if !lines.Scan() {
			close(silent)
			t.Fatalf("Chromium ended before it listened: %s", said.String())
		}
		said.WriteString(lines.Text() + "\n")
		if found, ok := strings.CutPrefix(lines.Text(), "DevTools listening on "); ok {
			address = found
		}
	}
	go func() {
		defer close(silent)
		for lines.Scan() { // further output does not matter, but must be read
		}
	}()
	if b.conn, err = websocket.Dial(address, "", "http://127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	b.conn.MaxPayloadBytes = 64 << 20
	if err := b.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

// call sends a command and waits for the response.
func (b *browser) call(method string, params, result any) {
	b.Helper()
	b.nextID++
	id := b.nextID
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	if err := websocket.JSON.Send(b.conn, command); err != nil {
		b.Fatalf("%s: %v", method, err)
	}
	for {
		m := b.receive()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (b *browser) receive() (m message) {
	b.Helper()
	if err := websocket.JSON.Receive(b.conn, &m); err != nil {
		b.Fatalf("reading from Chromium: %v", err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded++
	case "Runtime.exceptionThrown":
		b.complaints = append(b.complaints, string(m.Params))
	case "Log.entryAdded":
		var entry struct{ Entry struct{ Level, Text string } }
		if err := json.Unmarshal(m.Params, &entry); err == nil && entry.Entry.Level == "error" {
			b.complaints = append(b.complaints, entry.Entry.Text)
		}
	}
	return m
}

func (b *browser) open(url string) {
	b.Helper()
	before := b.loaded
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.waitForLoad(before)
}

func (b *browser) waitForLoad(before int) {
	b.Helper()
	for b.loaded == before {
		b.receive()
	}
}

// eval runs an expression in the page and decodes its value.
func (b *browser) eval(expression string, value any) {
	b.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if value != nil {
		if err := json.Unmarshal(answer.Result.Value, value); err != nil {
			b.Fatalf("%s: %v: %s", expression, err, answer.Result.Value)
		}
	}
}

func (b *browser) text(expression string) (text string) {
	b.Helper()
	b.eval("String("+expression+")", &text)
	return text
}

func (b *browser) number(expression string) (number float64) {
	b.Helper()
	b.eval("Number("+expression+")", &number)
	return number
}

type point struct{ X, Y float64 }

// middleOf returns the position of the center of an element.
func (b *browser) middleOf(element string) (p point) {
	b.Helper()
	b.eval(fmt.Sprintf(`(() => { const e = %s; e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); `+
		`return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, element), &p)
	return p
}

func (b *browser) mouse(kind string, at point, more map[string]any) {
	b.Helper()
	params := map[string]any{"type": kind, "x": at.X, "y": at.Y}
	for key, value := range more {
		params[key] = value
	}
	b.call("Input.dispatchMouseEvent", params, nil)
}

var leftButton = map[string]any{"button": "left", "buttons": 1, "clickCount": 1}

func (b *browser) clickAt(at point) {
	b.Helper()
	b.mouse("mouseMoved", at, nil)
	b.mouse("mousePressed", at, leftButton)
	b.mouse("mouseReleased", at, leftButton)
}

func (b *browser) click(element string) {
	b.Helper()
	b.clickAt(b.middleOf(element))
}

func (b *browser) drag(from, to point) {
	b.Helper()
	b.mouse("mousePressed", from, leftButton)
	for i := range 5 {
		step := float64(i+1) / 5
		b.mouse("mouseMoved", point{from.X + (to.X-from.X)*step, from.Y + (to.Y-from.Y)*step}, leftButton)
	}
	b.mouse("mouseReleased", to, leftButton)
}

func (b *browser) screenshot() []byte {
	b.Helper()
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	content, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil && len(content) < 1000 {
		err = errors.New("an empty picture")
	}
	if err != nil {
		b.Fatal(err)
	}
	return content
}
