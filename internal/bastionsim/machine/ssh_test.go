package machine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
)

// login is a machine with a user gardener, and the key and address to log in with.
type login struct {
	*running
	key  ssh.Signer
	addr string
}

func withSSH(t testing.TB) *login {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	userData := `#!/bin/bash -eu
id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo "` + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))) + `" > /home/gardener/.ssh/authorized_keys
chown gardener:gardener /home/gardener/.ssh/authorized_keys
echo "gardener ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/99-gardener-user
systemctl start ssh
`
	l := &login{running: boot(t, Config{UserData: []byte(userData)}), key: key}
	if status := l.CloudInit(); status.Error != "" {
		t.Fatalf("%s\n%s", status.Error, read(t, l.running, cloudInitLog))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.addr = listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- l.ServeSSH(context.Background(), listener) }()
	t.Cleanup(func() {
		l.stop()
		if err := <-done; err != nil {
			t.Errorf("ServeSSH: %v", err)
		}
	})
	return l
}

func (l *login) dial() (*ssh.Client, error) {
	return ssh.Dial("tcp", l.addr, &ssh.ClientConfig{
		User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: ssh.FixedHostKey(l.HostKey()),
	})
}

func (l *login) session(t testing.TB) *ssh.Session {
	t.Helper()
	client, err := l.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// status returns the exit status of a session.
func status(t testing.TB, err error) int {
	t.Helper()
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return exit.ExitStatus()
	}
	if err != nil {
		t.Error(err)
	}
	return 0
}

func TestCommandsOverSSH(t *testing.T) {
	l := withSSH(t)
	for command, want := range map[string]struct {
		out    string
		status int
	}{
		"whoami; hostname; pwd":        {out: "gardener\nnode-1\n/home/gardener\n"},
		"cat":                          {out: "input"},
		"echo $SSH_CONNECTION | wc -w": {out: "4\n"},
		"exit 7":                       {status: 7},
		"cat /etc/shadow 2>/dev/null":  {status: 1},
		"sudo whoami":                  {out: "root\n"},
		"systemctl is-active ssh":      {out: "active\n"},
		"test -e /work || test -e /proc/1/root/work": {status: 1}, // nothing of the host
	} {
		session := l.session(t)
		if command == "cat" { // a client whose input is not read reports an error
			session.Stdin = strings.NewReader("input")
		}
		out, err := session.Output(command)
		if got := status(t, err); string(out) != want.out || got != want.status {
			t.Errorf("%s: %q with status %d, want %q with %d", command, out, got, want.out, want.status)
		}
	}
}

// A shell without a terminal runs what it reads.
func TestScriptOverSSH(t *testing.T) {
	session := withSSH(t).session(t)
	var out bytes.Buffer
	session.Stdin, session.Stdout = strings.NewReader("echo a\nid -un\nexit 3\n"), &out
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	if got := status(t, session.Wait()); got != 3 || out.String() != "a\ngardener\n" {
		t.Errorf("%q with status %d", out.String(), got)
	}
}

func TestInteractiveShell(t *testing.T) {
	session := withSSH(t).session(t)
	in, _ := session.StdinPipe()
	out, _ := session.StdoutPipe()
	if err := errors.Join(session.RequestPty("xterm", 24, 80, nil), session.Shell()); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	until := func(want string) {
		t.Helper()
		var got strings.Builder
		for !strings.Contains(got.String(), want) {
			b, err := reader.ReadByte()
			if err != nil {
				t.Fatalf("waiting for %q: %v after %q", want, err, got.String())
			}
			got.WriteByte(b)
		}
	}
	_, _ = io.WriteString(in, "echo $((40+2))\r")
	until("42\r\n")
	until("$ ")
	_, _ = io.WriteString(in, "echo $((6*7)); sleep 1000\r")
	until("42\r\n") // so it runs
	_ = session.Signal(ssh.SIGINT)
	until("$ ")
	_, _ = io.WriteString(in, "exit 5\r")
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if got := status(t, session.Wait()); got != 5 {
		t.Errorf("the shell ended with status %d", got)
	}
}

// A command with a terminal: what is typed is echoed, lines are edited, Ctrl-C ends it.
func TestCommandWithTerminal(t *testing.T) {
	l := withSSH(t)
	session := l.session(t)
	if err := session.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	session.Stdin = strings.NewReader("abx\x7fc\r\x04")
	out, err := session.Output("cat")
	if got := string(out); err != nil || got != "abx\b \bc\r\nabc\r\n" {
		t.Errorf("cat with a terminal: %q, %v", got, err)
	}
	session = l.session(t)
	if err := session.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	session.Stdin = strings.NewReader("\x03")
	var exit *ssh.ExitError
	if err := session.Run("sleep 1000"); !errors.As(err, &exit) || exit.Signal() != "INT" {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

func TestSignalEndsCommand(t *testing.T) {
	session := withSSH(t).session(t)
	if err := errors.Join(session.Start("sleep 1000"), session.Signal(ssh.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := session.Wait(); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("the command ended with %v", err)
	}
}

// The files of the machine decide at each login who may log in.
func TestWhoMayLogIn(t *testing.T) {
	l := withSSH(t)
	run := func(command string) {
		t.Helper()
		if out, err := l.session(t).CombinedOutput(command); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	works := func(what string, want bool) {
		t.Helper()
		client, err := l.dial()
		if err == nil {
			_ = client.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v, want it to work: %v", what, err, want)
		}
	}
	run("sudo useradd -m other")
	if a, ok := shell.LookupUser(l.FS(), "other"); !ok || locked(shadowOf(l.FS(), "other"), l.clock.Now()) || a.UID == 0 {
		t.Errorf("a new user: %+v, %v", a, ok)
	}
	run(`sudo sed -i 's/^other:!/other:!!/' /etc/shadow`)
	if a, ok := shell.LookupUser(l.FS(), "other"); !ok || !locked(shadowOf(l.FS(), "other"), l.clock.Now()) {
		t.Errorf("a locked user: %+v, %v", a, ok)
	}
	run("chmod 0666 ~/.ssh/authorized_keys")
	works("a file that others can write", false)
	if err := l.FS().WriteFile("/home/gardener/.ssh/authorized_keys", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	works("an empty file", false)
	if err := l.Units().Stop(t.Context(), "sshd"); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("a server that is stopped says %q", got)
	}
}

func TestLocked(t *testing.T) {
	now := testClock().Now()
	for line, want := range map[string]bool{
		"u:!:1::::::":         false, // never had a password
		"u:*:1::::::":         false,
		"u:!*:1::::::":        false,
		"u:$6$abc:1::::::":    false,
		"u:!$6$abc:1::::::":   true, // usermod -L
		"u:!!:1::::::":        true,
		"u:!:1:::::1:":        true, // expired in 1970
		"u:!:1:::::99999:":    false,
		"u:!:1:::::nonsense:": false,
	} {
		if got := locked(strings.Split(line, ":"), now); got != want {
			t.Errorf("%s: locked is %v", line, got)
		}
	}
}

// A script that is too long is not run in part.
func TestLongScriptOverSSH(t *testing.T) {
	session := withSSH(t).session(t)
	var out, problem bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader("echo a\n"+strings.Repeat("#", maxScript)), &out, &problem
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	if got := status(t, session.Wait()); got != 1 || !strings.Contains(problem.String(), "longer than") || out.Len() > 0 {
		t.Errorf("%q and %q with status %d", out.String(), problem.String(), got)
	}
}
