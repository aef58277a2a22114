package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell/shelltest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestHostileRequests sends what an SSH client may ask for besides commands: variables that programs obey, absurd
// sizes, and connections to the host's addresses. Refused requests have no effect, and the machine goes on.
func TestHostileRequests(t *testing.T) {
	trap := shelltest.New(t)
	l := withSSH(t)
	t.Run("variables", func(t *testing.T) { hostileVariables(t, trap, l) })
	t.Run("commands", func(t *testing.T) { hostileCommands(t, trap, l) })
	t.Run("ways to the host", func(t *testing.T) { forwardToHost(t, trap, l) })
	t.Run("terminals", func(t *testing.T) { absurdTerminals(t, l) })
	t.Run("signals", func(t *testing.T) { hostileSignals(t, l) })
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(bytes.Repeat([]byte("SSH-2.0-"+strings.Repeat("x", 1000)), 1000))
	_ = conn.Close()
	if out, err := l.session(t).Output("echo alive"); err != nil || string(out) != "alive\n" {
		t.Errorf("in the end the machine says %q, %v", out, err)
	}
}

// hostileVariables sets variables that programs and shells of the host would obey.
func hostileVariables(t *testing.T, trap *shelltest.Trap, l *login) {
	t.Helper()
	session := l.session(t)
	for name, value := range map[string]string{
		"LD_PRELOAD": trap.Script("HOST/secret"), "PATH": trap.Script("HOST/"), "BASH_ENV": trap.Script("HOST/secret"),
		"ENV":  trap.Script("HOST/secret"),
		"HOME": trap.Script("HOST/"), "PROMPT_COMMAND": "cat", "IFS": "x", "LC_": "x\x00y", "LC_X\n": "y", "LC_X=y; id": "z",
		"LANG": "a\nPATH=/", "SSH_AUTH_SOCK": "/x", "": "x",
	} {
		if err := session.Setenv(name, value); err == nil && name != "LC_" {
			t.Errorf("variable %q may be set", name)
		}
	}
	out := &typist{}
	session.Stdout, session.Stderr = out, out
	if err := toItsEnd(session, "env; echo ends"); err != nil || !strings.HasSuffix(out.text(0), "ends\n") ||
		regexp.MustCompile(`PRELOAD|BASH_ENV|PROMPT|SOCK|PATH=/\n`).MatchString(out.text(0)) {
		t.Errorf("the environment is %q, %v", out.text(0), err)
	}
	trap.Check(t, out.text(0))
}

// hostileCommands runs commands that are too long, no text, or unfinished.
func hostileCommands(t *testing.T, trap *shelltest.Trap, l *login) {
	t.Helper()
	for name, c := range map[string]struct {
		command string
		refused bool
	}{
		"a zero byte":    {"cat /etc/hostname\x00; cat " + trap.Script("HOST/secret"), false},
		"only zeros":     {strings.Repeat("\x00", 1000), false},
		"a mebibyte":     {"echo " + strings.Repeat("x", 1<<20), true}, // more than a packet may have: the connection ends
		"200 KiB":        {"echo " + strings.Repeat("x", 200<<10), true},
		"many words":     {"echo " + strings.Repeat("x ", 15<<10) + "| wc -c", false},
		"no UTF-8":       {"echo \xff\xfe\x80 | cat", false},
		"deep nesting":   {strings.Repeat("(", 30<<10), false},
		"no end of it":   {"echo \"$(", false},
		"empty":          {"", true},
		"many new lines": {strings.Repeat("\n", 30<<10) + "cat " + trap.Script("HOST/secret"), false},
	} {
		session := l.session(t)
		out := &typist{}
		session.Stdout, session.Stderr = out, out
		var exit *ssh.ExitError
		if err := toItsEnd(session, c.command); c.refused != (err != nil && !errors.As(err, &exit)) {
			t.Errorf("%s: %v; the output was %.300q", name, err, out.text(0))
		}
		trap.Check(t, out.text(0))
	}
}

// forwardToHost asks for connections to the host's addresses and sockets.
func forwardToHost(t *testing.T, trap *shelltest.Trap, l *login) {
	t.Helper()
	client := l.as(t, "gardener")
	port, _ := strconv.ParseUint(trap.Port(), 10, 16)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "0.0.0.0", "127.1", "::ffff:127.0.0.1", "2130706433", "[::1]"} {
		extra := ssh.Marshal(struct {
			Host   string
			Port   uint32
			Origin string
			From   uint32
		}{host, uint32(port), "127.0.0.1", 1})
		if _, _, err := client.OpenChannel("direct-tcpip", extra); err == nil {
			t.Errorf("a connection to %s is forwarded", host)
		}
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the host listens for a client")
	}
	if _, err := client.ListenUnix(trap.Script("HOST/socket")); err == nil {
		t.Error("the host has a socket for a client")
	}
	if conn, err := client.Dial("unix", "/var/run/docker.sock"); err == nil {
		_ = conn.Close()
		t.Error("a client reaches a socket of the host")
	}
	trap.Check(t, "")
}

// hostileSignals sends signals that do not end a command, and then one that does.
func hostileSignals(t *testing.T, l *login) {
	t.Helper()
	session := l.session(t)
	if err := session.Start("sleep 1000"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"STOP", "CONT", "", "SIGKILL", "9", strings.Repeat("KILL", 1000), "USR1", "PIPE", "ALRM"} {
		for range 20 {
			_ = session.Signal(ssh.Signal(name)) // none of them ends it
		}
	}
	var exit *ssh.ExitError
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	for {
		_ = session.Signal(ssh.SIGHUP) // lost while too many others wait
		select {
		case err := <-ended:
			if !errors.As(err, &exit) || exit.Signal() != "HUP" {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// absurdTerminals types bytes that are no text into terminals of absurd sizes, and changes the sizes meanwhile.
func absurdTerminals(t *testing.T, l *login) {
	client := l.as(t, "gardener")
	sizes := []uint32{0, 1, 2, 80, 1000, 65536, 1<<31 - 1, 1<<32 - 1}
	for _, columns := range sizes {
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		k := &typist{session: session, ended: make(chan struct{})}
		session.Stdout = k
		k.keys, _ = session.StdinPipe()
		pty := struct {
			Term                         string
			Columns, Rows, Width, Height uint32
			Modes                        string
		}{"xterm\x1b[31m", columns, columns, columns, columns, strings.Repeat("\x80\xff\xff\xff\xff", 100)}
		if ok, err := session.SendRequest("pty-req", true, ssh.Marshal(pty)); !ok || err != nil {
			t.Fatalf("a terminal of %d columns: %v, %v", columns, ok, err)
		}
		if err := session.Shell(); err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{
			strings.Repeat("x", 20000), "\x03", "\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F\x1bOP\x1b[999999999;999999999H\x1b[200~",
			"\xff\xfe\x80\xc0\x00\x00", "\x1b[201~\x03",
			strings.Repeat("日本語", 2000), "\x15\x0b\x17\x1a\x1c\x12\x0c", strings.Repeat("\x1b", 5000), "\x03",
			strings.Repeat("\x7f", 5000), strings.Repeat("\t", 100),
		} {
			_, _ = io.WriteString(k.keys, text)
			size := sizes[i%len(sizes)]
			if err := session.WindowChange(int(size), int(sizes[(i+3)%len(sizes)])); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _ = session.Wait(); close(k.ended) }()
		if _, err := fmt.Fprint(k.keys, "\r\x03"); err != nil {
			t.Fatal(err)
		}
		if err := session.WindowChange(40, 100); err != nil {
			t.Fatal(err)
		}
		last := -1
		testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
			place := k.place()
			if strings.Contains(k.text(0), "\nalive\r") {
				return nil
			} else if place == last { // what was typed before has been read
				_, _ = io.WriteString(k.keys, "\x03echo a''live\r")
			}
			last = place
			return fmt.Errorf("a terminal of %d columns does not come back: %.500q", columns, k.text(max(0, place-500)))
		})
		_ = session.Close()
		<-k.ended
	}
}
