package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell/shelltest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// as logs in as a user. If the user is root, it first writes root's authorized_keys.
func (l *login) as(t testing.TB, user string) *ssh.Client {
	t.Helper()
	if user == "root" {
		keys := ssh.MarshalAuthorizedKey(l.key.PublicKey())
		if err := errors.Join(l.FS().MkdirAll("/root/.ssh", 0o700), l.FS().WriteFile("/root/.ssh/authorized_keys", keys, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	client, err := ssh.Dial("tcp", l.addr, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: ssh.FixedHostKey(l.HostKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// typist types into a terminal, and remembers the last part of the output.
type typist struct {
	session *ssh.Session
	keys    io.Writer
	ended   chan struct{}

	mu    sync.Mutex
	seen  []byte
	first int // the offset of the first byte of seen in the whole output
}

func (k *typist) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, p...)
	if much := len(k.seen) - 1<<20; much > 1<<20 {
		k.seen, k.first = slices.Clone(k.seen[much:]), k.first+much
	}
	return len(p), nil
}

// place returns the offset of the next byte of output.
func (k *typist) place() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.first + len(k.seen)
}

// text returns the output since a place.
func (k *typist) text(place int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.seen[max(place-k.first, 0):])
}

// sitDown opens an interactive shell and waits for its prompt.
func sitDown(t testing.TB, client *ssh.Client) *typist {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	k := &typist{session: session, ended: make(chan struct{})}
	session.Stdout = k
	if k.keys, err = session.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.RequestPty("xterm", 40, 1000, nil), session.Shell()); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = session.Wait()
		close(k.ended)
	}()
	t.Cleanup(func() { _ = session.Close(); <-k.ended })
	k.waitFor(t, 0, regexp.MustCompile(`(^|\n)`+prompt))
	return k
}

// prompt matches the end of the output when the shell reads the next line.
const prompt = `([^\n]*@[^\n:]*:[^\n]*[$#]|>) $`

// waitFor waits until the output since a place matches, or the session has ended.
func (k *typist) waitFor(t testing.TB, from int, want *regexp.Regexp) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		select {
		case <-k.ended:
			return nil
		default:
		}
		text := k.text(from)
		if want.MatchString(text) {
			return nil
		}
		return fmt.Errorf("no %s on the terminal: %.500q … %q", want, text, text[max(len(text)-500, 0):])
	})
}

// keyed types keys that end a line, and waits for the next prompt: a command that still runs would read keys typed
// earlier.
func (k *typist) keyed(t testing.TB, keys string) {
	t.Helper()
	from := k.place()
	_, _ = io.WriteString(k.keys, keys)
	k.waitFor(t, from, regexp.MustCompile(`\n`+prompt))
}

// TestJobTakesMemory verifies that the limit of memory ends a job in the background.
func TestJobTakesMemory(t *testing.T) {
	k := sitDown(t, withSSH(t).as(t, "gardener"))
	from := k.place()
	k.keyed(t, `x=$(head -c 1000000 /dev/zero | tr '\0' a)`+"\r")
	k.keyed(t, `(for i in $(seq 300); do declare "v$i=$x$i"; done; echo "done" $i) & wait`+"\r")
	k.keyed(t, "wait\r")
	if text := k.text(from); !strings.Contains(text, "memory is used up") || strings.Contains(text, "done 300") {
		t.Errorf("the job wrote %q", text)
	}
}

// TestInterruptAfterLine verifies that Ctrl-C ends a command that does not read what was typed.
func TestInterruptAfterLine(t *testing.T) {
	session := withSSH(t).session(t)
	k := &typist{session: session}
	session.Stdout = k
	keys, err := session.StdinPipe()
	if err := errors.Join(err, session.RequestPty("xterm", 40, 100, nil), session.Start("echo begun; sleep 1000")); err != nil {
		t.Fatal(err)
	}
	k.waitFor(t, 0, regexp.MustCompile("begun"))
	_, _ = io.WriteString(keys, "hello\r\x03")
	if err := session.Wait(); err == nil || !strings.Contains(err.Error(), "130") {
		t.Errorf("got %v", err)
	}
}

// readers are the attempts that read the terminal. They are typed with a Ctrl-D that ends their input: the shell does
// not read it, because it reads no keys before they have begun.
var readers = []string{"commands of sed", "devices"}

// TestEscapesOverSSH runs every attempt of the sandbox's tests as a command of a user, and has root type it.
func TestEscapesOverSSH(t *testing.T) {
	trap := shelltest.New(t)
	for _, name := range slices.Sorted(maps.Keys(shelltest.Escapes)) {
		t.Run(name, func(t *testing.T) {
			attempt := trap.Script(shelltest.Escapes[name])
			l := withSSH(t)
			out := &typist{} // only its output is used
			session := l.session(t)
			session.Stdout, session.Stderr = out, out
			err := toItsEnd(session, attempt)
			if exit := (*ssh.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Errorf("the command ended with %v; the output was %.500q", err, out.text(0))
			}
			trap.Check(t, out.text(0))

			k := sitDown(t, l.as(t, "root"))
			enter := "\r"
			if slices.Contains(readers, name) {
				enter = "\r\x04"
			}
			for text := range strings.SplitSeq(attempt, "\n") {
				k.keyed(t, text+enter)
			}
			k.keyed(t, "echo still; exit\r")
			trap.Check(t, k.text(0))
			l.stop()
			trap.CheckFolder(t, l.cfg.Dir)
		})
	}
}

// toItsEnd runs a command to its end. It returns an error if the command does not end.
func toItsEnd(session *ssh.Session, command string) error {
	done := make(chan error, 1)
	go func() { done <- session.Run(command) }()
	select {
	case err := <-done:
		return err
	case <-time.After(testutil.Timeout):
		_ = session.Close()
		return fmt.Errorf("it does not end, also not when the client goes: %w", <-done)
	}
}

// TestBombsOverSSH runs every bomb as a command. In turns, the machine's time limit, the client's signal and the
// client's disconnection end it. Then nothing of the bomb is left, and the machine answers.
func TestBombsOverSSH(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(shelltest.Bombs)) {
		t.Run(name, func(t *testing.T) {
			l := withSSH(t)
			goroutinesEnded := testutil.Goroutines(t)
			client := l.as(t, "gardener")
			session, err := client.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			session.Stdout, session.Stderr = io.Discard, io.Discard
			if err := session.Start(shelltest.Bombs[name]); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- session.Wait() }()
			if !endBomb(t, l, client, session, ended, i%3) {
				t.Error("it does not end")
			}
			_ = client.Close()
			goroutinesEnded(testutil.Timeout)
			var out bytes.Buffer
			alive := l.session(t)
			alive.Stdout = &out
			if err := toItsEnd(alive, "echo alive"); err != nil || out.String() != "alive\n" {
				t.Errorf("after it the machine says %q, %v", out.String(), err)
			}
		})
	}
}

// endBomb ends a command in one of three ways, unless a limit has ended it before, and reports whether it has ended.
func endBomb(t *testing.T, l *login, client *ssh.Client, session *ssh.Session, ended <-chan error, way int) bool {
	t.Helper()
	for range 1000 { // of 30 ms
		select {
		case err := <-ended:
			var exit *ssh.ExitError
			var missing *ssh.ExitMissingError // the client was idle for too long, or is gone
			if way == 1 && errors.As(err, &exit) && exit.Signal() == "KILL" || errors.As(err, &missing) {
				return true
			}
			if !errors.As(err, &exit) || exit.ExitStatus() != 137 {
				t.Errorf("it ended with %v", err)
			}
			return true
		case <-time.After(30 * time.Millisecond):
		}
		switch way {
		case 0:
			l.clock.Step(MaxCommandTime)
		case 1:
			_ = session.Signal(ssh.SIGKILL) // the error of a session that has ended is handled above
		case 2:
			_ = client.Close()
		}
	}
	return false
}

// TestBombsTyped types the bombs that could block a terminal, and verifies that Ctrl-C brings the prompt back.
func TestBombsTyped(t *testing.T) {
	k := sitDown(t, withSSH(t).as(t, "gardener"))
	for _, name := range []string{"loop", "sleep", "endless output", "endless random", "endless trace", "fork bomb", "many jobs",
		"read from nothing", "recursion", "a huge file", "printf alone", "nested parentheses", "words of a loop", "programs that wait"} {
		_, _ = io.WriteString(k.keys, shelltest.Bombs[name]+"\r")
		from := k.place()
		_, _ = io.WriteString(k.keys, "\x03")
		k.waitFor(t, from, regexp.MustCompile(`gardener@node-1:~\$ `)) // jobs in the background may write after it
		_, _ = io.WriteString(k.keys, "echo a''live\r")
		k.waitFor(t, from, regexp.MustCompile(`(?s)\nalive\r.*gardener@node-1:~\$ `))
		select {
		case <-k.ended:
			t.Fatalf("%s: the session has ended", name)
		default:
		}
	}
}

// TestJobsOfTerminalEnd verifies that background jobs of a terminal end after the time that a command may take, too.
func TestJobsOfTerminalEnd(t *testing.T) {
	l := withSSH(t)
	k := sitDown(t, l.as(t, "gardener"))
	goroutinesEnded := testutil.Goroutines(t)
	for _, job := range []string{"cat /dev/zero > /dev/null &", "sleep infinity &", "while :; do sleep 1; done &"} {
		k.keyed(t, job+"\r")
	}
	for range 3 { // half of the time that a command may take, and a line is typed
		l.clock.Step(MaxCommandTime / 2)
		k.keyed(t, "true\r")
	}
	goroutinesEnded(testutil.Timeout)
}
