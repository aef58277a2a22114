package sshd

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// fakeHost is a machine with some users. Its files belong to UID 1000 unless info says otherwise.
type fakeHost struct {
	mu      sync.Mutex
	users   map[string]User
	files   map[string]string
	info    map[string]FileInfo
	journal []string
	run     func(ctx context.Context, s *Session) Exit
}

func (h *fakeHost) User(name string) (User, bool) {
	u, ok := h.users[name]
	return u, ok
}

func (h *fakeHost) Stat(path string) (FileInfo, error) {
	if info, ok := h.info[path]; ok {
		return info, nil
	}
	if _, ok := h.files[path]; ok {
		return FileInfo{UID: 1000, Mode: 0o600}, nil
	}
	if strings.HasSuffix(path, "authorized_keys") {
		return FileInfo{}, fs.ErrNotExist
	}
	return FileInfo{UID: 1000, Mode: fs.ModeDir | 0o755}, nil
}

func (h *fakeHost) ReadFile(path string, limit int64) ([]byte, error) {
	return []byte(h.files[path]), nil
}

func (h *fakeHost) Run(ctx context.Context, s *Session) Exit { return h.run(ctx, s) }

func (h *fakeHost) Journal(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal = append(h.journal, line)
}

func (h *fakeHost) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal = nil
}

func (h *fakeHost) journaled(part string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.journal, "\n"), part)
}

// fixture is a server that listens, and a user "gardener" who may log in with key.
type fixture struct {
	host   *fakeHost
	clock  *clocktesting.FakeClock
	server *Server
	addr   string
	key    ssh.Signer
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func authorizedKey(key ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(key.PublicKey())) }

const keysFile = "/home/gardener/.ssh/authorized_keys"

func newServer(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{key: newKey(t), clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))}
	f.host = &fakeHost{
		users: map[string]User{"gardener": {Name: "gardener", Home: "/home/gardener", Shell: "/bin/bash", UID: 1000}},
		files: map[string]string{keysFile: authorizedKey(f.key)},
		info:  map[string]FileInfo{},
	}
	hostKey, err := ReadHostKey(filepath.Join(t.TempDir(), "key"), os.WriteFile)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Host: f.host, HostKey: hostKey, Clock: f.clock, Log: logr.Discard()}
	if change != nil {
		change(&cfg)
	}
	f.server = New(cfg)
	return f
}

func serve(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := newServer(t, change)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(testutil.Timeout):
			t.Error("Serve does not return when its context ends")
		}
	})
	return f
}

func (f *fixture) config(user string, auth ...ssh.AuthMethod) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.FixedHostKey(f.server.cfg.HostKey.PublicKey())}
}

func (f *fixture) dial(t *testing.T) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial("tcp", f.addr, f.config("gardener", ssh.PublicKeys(f.key)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newSession(t *testing.T, client *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExec(t *testing.T) {
	f := serve(t, nil)
	f.host.run = func(_ context.Context, s *Session) Exit {
		in, _ := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%s|%s|%s|%s|%v", s.User.Name, s.Command, in, strings.Join(s.Env, ","), s.Terminal == nil)
		fmt.Fprint(s.Stderr, "complaint")
		return Exit{Status: 42}
	}
	s := newSession(t, f.dial(t))
	for name, allowed := range map[string]bool{
		"LANG": true, "LC_ALL": true, "PATH": false, "LD_PRELOAD": false, "BASH_ENV": false, "LC_A=B": false,
	} {
		if err := s.Setenv(name, "x"); (err == nil) != allowed {
			t.Errorf("setting %s: %v, allowed is %v", name, err, allowed)
		}
	}
	var stderr strings.Builder
	s.Stdin, s.Stderr = strings.NewReader("input"), &stderr
	out, err := s.Output("do it")
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 42 {
		t.Errorf("the command ended with %v, want status 42", err)
	}
	got := strings.NewReplacer("LC_ALL=x,LANG=x", "LANG=x,LC_ALL=x").Replace(string(out))
	if want := "gardener|do it|input|LANG=x,LC_ALL=x|true"; got != want || stderr.String() != "complaint" {
		t.Errorf("output %q and %q, want %q and complaint", out, stderr.String(), want)
	}
	if !f.host.journaled("Accepted publickey for gardener") || f.host.journaled("do it") {
		t.Errorf("journal: %q", f.host.journal)
	}
}

func TestShellWithTerminal(t *testing.T) {
	f := serve(t, nil)
	f.host.run = func(ctx context.Context, s *Session) Exit {
		fmt.Fprintf(s.Stdout, "%s %v\n", s.Terminal.Name, s.Terminal.Window)
		fmt.Fprintf(s.Stderr, "%v\n", <-s.Terminal.Resized)
		line, _ := bufio.NewReader(s.Stdin).ReadString('\r')
		fmt.Fprintf(s.Stdout, "%q\n", line)
		return Exit{Signal: <-s.Signals}
	}
	s := newSession(t, f.dial(t))
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := errors.Join(s.RequestPty("xterm", 40, 100, ssh.TerminalModes{}), s.Shell()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if lines.Scan(); lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	expect("xterm {100 40}")
	_ = s.WindowChange(5000, 20)
	expect("{20 1000}")
	_, _ = io.WriteString(in, "ls\r")
	expect(`"ls\r"`)
	_ = s.Signal(ssh.SIGTERM)
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("the shell ended with %v, want signal TERM", err)
	}
}

// A session ends with its channel, whatever runs in it.
func TestClientLeaves(t *testing.T) {
	f := serve(t, nil)
	started, ended := make(chan struct{}), make(chan struct{})
	f.host.run = func(ctx context.Context, s *Session) Exit {
		close(started)
		<-ctx.Done()
		close(ended)
		return Exit{}
	}
	s := newSession(t, f.dial(t))
	if err := s.Start("sleep"); err != nil {
		t.Fatal(err)
	}
	<-started
	_ = s.Close()
	<-ended
}

func TestAuthentication(t *testing.T) {
	other := newKey(t)
	home := "/home/gardener"
	for name, c := range map[string]struct {
		user   string
		auth   []ssh.AuthMethod
		change func(f *fixture)
		ok     bool
		logged string
	}{
		"the key":          {ok: true},
		"another key":      {auth: []ssh.AuthMethod{ssh.PublicKeys(other)}},
		"none":             {auth: []ssh.AuthMethod{}},
		"password":         {auth: []ssh.AuthMethod{ssh.Password("gardener")}},
		"unknown user":     {user: "unknown"},
		"root without key": {user: "root"},
		"locked user": {change: func(f *fixture) {
			u := f.host.users["gardener"]
			u.Locked = true
			f.host.users["gardener"] = u
		}},
		"second line": {ok: true, change: func(f *fixture) {
			f.host.files[keysFile] = "# comment\n\n" + authorizedKey(other) + f.host.files[keysFile]
		}},
		"supported options": {ok: true, change: func(f *fixture) {
			f.host.files[keysFile] = "restrict,pty,no-port-forwarding " + f.host.files[keysFile]
		}},
		"from": {logged: "option from is not supported", change: func(f *fixture) {
			f.host.files[keysFile] = `from="10.0.0.0/8" ` + f.host.files[keysFile]
		}},
		"command": {logged: "option command is not supported", change: func(f *fixture) {
			f.host.files[keysFile] = `command="true" ` + f.host.files[keysFile]
		}},
		"certificate authority": {logged: "is not supported", change: func(f *fixture) {
			f.host.files[keysFile] = `cert-authority ` + f.host.files[keysFile]
		}},
		"file others can write": {logged: "bad ownership or modes for " + keysFile, change: func(f *fixture) {
			f.host.info[keysFile] = FileInfo{UID: 1000, Mode: 0o620}
		}},
		"file of another": {logged: "bad ownership or modes for " + keysFile, change: func(f *fixture) {
			f.host.info[keysFile] = FileInfo{UID: 1001, Mode: 0o600}
		}},
		"file of root": {ok: true, change: func(f *fixture) {
			f.host.info[keysFile] = FileInfo{UID: 0, Mode: 0o644}
		}},
		"not a file": {logged: "not a regular file", change: func(f *fixture) {
			f.host.info[keysFile] = FileInfo{UID: 1000, Mode: fs.ModeNamedPipe | 0o600}
		}},
		"folder others can write": {logged: "bad ownership or modes for " + home + "/.ssh", change: func(f *fixture) {
			f.host.info[home+"/.ssh"] = FileInfo{UID: 1000, Mode: fs.ModeDir | 0o777}
		}},
		"home others can write": {logged: "bad ownership or modes for " + home, change: func(f *fixture) {
			f.host.info[home] = FileInfo{UID: 1000, Mode: fs.ModeDir | 0o775}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			if c.change != nil {
				c.change(f)
			}
			if c.user == "" {
				c.user = "gardener"
			}
			if c.auth == nil {
				c.auth = []ssh.AuthMethod{ssh.PublicKeys(f.key)}
			}
			client, err := ssh.Dial("tcp", f.addr, f.config(c.user, c.auth...))
			if err == nil {
				_ = client.Close()
			}
			if (err == nil) != c.ok {
				t.Errorf("logging in: %v, want it to work: %v", err, c.ok)
			}
			if err != nil && !strings.Contains(err.Error(), "unable to authenticate") {
				t.Errorf("the error tells more than the others: %v", err)
			}
			if c.logged != "" && !f.host.journaled(c.logged) {
				t.Errorf("the journal has no %q: %q", c.logged, f.host.journal)
			}
		})
	}
}

// Old algorithms are not agreed on, even if the client wants nothing else.
func TestAlgorithms(t *testing.T) {
	f := serve(t, nil)
	try := func(change func(*ssh.Config)) error {
		config := f.config("gardener", ssh.PublicKeys(f.key))
		change(&config.Config)
		client, err := ssh.Dial("tcp", f.addr, config)
		if err == nil {
			if got := string(client.ServerVersion()); got != Version {
				t.Errorf("the server says it is %q", got)
			}
			_ = client.Close()
		}
		return err
	}
	for _, kex := range []string{"diffie-hellman-group14-sha1", "diffie-hellman-group14-sha256", "diffie-hellman-group-exchange-sha256"} {
		if try(func(c *ssh.Config) { c.KeyExchanges = []string{kex} }) == nil {
			t.Errorf("key exchange %s works", kex)
		}
	}
	for _, cipher := range []string{"aes128-cbc", "3des-cbc"} {
		if try(func(c *ssh.Config) { c.Ciphers = []string{cipher} }) == nil {
			t.Errorf("cipher %s works", cipher)
		}
	}
	for _, mac := range []string{"hmac-sha1", "hmac-sha2-256"} {
		if try(func(c *ssh.Config) { c.Ciphers, c.MACs = []string{"aes128-ctr"}, []string{mac} }) == nil {
			t.Errorf("MAC %s works", mac)
		}
	}
	for _, kex := range keyExchanges {
		if err := try(func(c *ssh.Config) { c.KeyExchanges = []string{kex} }); err != nil {
			t.Errorf("key exchange %s: %v", kex, err)
		}
	}
	for _, cipher := range ciphers {
		if err := try(func(c *ssh.Config) { c.Ciphers = []string{cipher} }); err != nil {
			t.Errorf("cipher %s: %v", cipher, err)
		}
	}
}
