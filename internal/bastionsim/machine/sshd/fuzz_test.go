package sshd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// against runs a client against a server, and fails the test if the server does not end with the connection.
func (f *fixture) against(t *testing.T, client func(conn net.Conn)) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		f.server.handle(context.Background(), far, f.server.admit(far))
		close(ended)
	}()
	_ = near.SetDeadline(time.Now().Add(testutil.Timeout))
	client(near)
	_ = near.Close()
	select {
	case <-ended:
	case <-time.After(testutil.Timeout):
		t.Fatal("the server does not end with the connection")
	}
}

// FuzzHandshake sends bytes that no client sends, instead of the exchange of versions or after it. The server must not
// crash, and must end with the connection.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n"), false)
	f.Add([]byte("SSH-1.99-x\r\n\x00\x00\x00\x0c\x0a\x14"), false)
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), false)
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x1c\x06\x14AAAAAAAAAAAAAAAA\x00\x00\x00\x00PPPPPP"), false)
	f.Add([]byte("SSH-2.0-x\r\n\xff\xff\xff\xff"), false)
	f.Add([]byte("\x00\x00\x00\x0c\x0a\x02\x00\x00\x00\x00"), true)
	f.Add(slices.Concat([]byte{0, 0, 1, 4, 6}, rawOffer()), true)
	fixture := newServer(f, nil)
	f.Fuzz(func(t *testing.T, data []byte, afterVersions bool) {
		fixture.against(t, func(conn net.Conn) {
			if c := (&rawClient{conn: conn}); afterVersions && c.hello() != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = conn.Write(data)
		})
	})
}

// A client that agreed on no algorithm in a second key exchange once made the library panic before it had logged in.
// The panic depends on timing, so the test tries it often.
func TestSecondKeyExchange(t *testing.T) {
	if raceDetector {
		return // the test provokes a race in the library
	}
	f := newServer(t, nil)
	offer := bytes.Replace(rawOffer(), []byte("curve"), []byte("Curve"), 1)
	for range 200 {
		f.against(t, func(conn net.Conn) {
			c := &rawClient{conn: conn}
			if err := errors.Join(c.hello(), c.exchange()); err != nil {
				t.Fatal(err)
			}
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(io.Discard, conn)
			}()
			_ = c.send(offer)
			<-read // until the server has closed the connection
		})
	}
}

// The server soon stops reading from a client that sends a lot instead of logging in.
func TestLoginSize(t *testing.T) {
	f := newServer(t, nil)
	sent := 0
	f.against(t, func(conn net.Conn) {
		c := &rawClient{conn: conn}
		if err := errors.Join(c.hello(), c.exchange()); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		ignored := ssh.Marshal(struct {
			Data []byte `sshtype:"2"`
		}{make([]byte, 1000)})
		for sent < 10*MaxLoginSize && c.send(ignored) == nil {
			sent += len(ignored)
		}
	})
	if sent > MaxLoginSize {
		t.Errorf("a client that has not logged in may send %d bytes, more than %d", sent, MaxLoginSize)
	}
}

// FuzzMessages sends messages that no client sends on an encrypted connection, before or after the login.
func FuzzMessages(f *testing.F) {
	fixture := newServer(f, func(c *Config) {
		c.Subsystems = []string{"sftp"}
		c.Forward = func(context.Context, string, uint32) (net.Conn, error) {
			near, far := net.Pipe()
			_ = far.Close()
			return near, nil
		}
	})
	fixture.host.run = func(ctx context.Context, s *Session) Exit {
		_, _ = io.CopyN(s.Stdout, s.Stdin, 10)
		return Exit{Status: 1}
	}
	for _, seed := range seedMessages() {
		if raceDetector {
			break // the library has races that only such clients provoke
		}
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, loggedIn bool) {
		fixture.host.forget()
		fixture.against(t, func(conn net.Conn) {
			c := &rawClient{conn: conn}
			if err := errors.Join(c.hello(), c.exchange()); err != nil {
				t.Fatalf("exchanging keys: %v", err)
			}
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(io.Discard, conn)
			}()
			if loggedIn && c.authenticate("gardener", fixture.key) != nil {
				return
			}
			for _, message := range messages(data) {
				if c.send(message) != nil {
					return
				}
			}
			select { // the answers of the server can go wrong as well
			case <-read:
			case <-time.After(10 * time.Millisecond):
			}
		})
		if !loggedIn && fixture.host.journaled("Accepted") {
			t.Error("a client is admitted without the key")
		}
	})
}

// seedMessages returns the seeds for the fuzzing: each kind of message, sent where it belongs and where it does not.
func seedMessages() [][]byte {
	text := func(parts ...string) (data []byte) {
		for _, part := range parts {
			data = append(data, ssh.Marshal(struct{ S string }{part})...)
		}
		return data
	}
	message := func(number byte, parts ...[]byte) []byte { return append([]byte{number}, slices.Concat(parts...)...) }
	number := func(numbers ...uint32) (data []byte) {
		for _, n := range numbers {
			data = append(data, ssh.Marshal(struct{ N uint32 }{n})...)
		}
		return data
	}
	yes := []byte{1}
	auth := func(rest ...[]byte) []byte {
		return message(msgUserAuth, text("gardener", "ssh-connection"), slices.Concat(rest...))
	}
	service := message(msgServiceRequest, text("ssh-userauth"))
	session := message(90, text("session"), number(0, 1<<20, 1<<15))
	request := func(name string, rest ...[]byte) []byte {
		return message(98, number(0), text(name), yes, slices.Concat(rest...))
	}
	return [][]byte{
		asMessages(message(msgIgnore, text("x")), message(4, yes, text("debug", "")), message(1, number(2), text("bye", ""))),
		asMessages(rawOffer(), message(msgECDHInit, text("short")), message(msgNewKeys)),
		asMessages(message(msgServiceRequest, text("ssh-connection"))),
		asMessages(service, auth(text("none"))),
		asMessages(service, auth(text("password"), []byte{0}, text("secret"))),
		asMessages(service, auth(text("publickey"), []byte{0}, text("ssh-ed25519", "key"))),
		asMessages(service, auth(text("publickey"), yes, text("ssh-rsa", "key", "signature"))),
		asMessages(service, auth(text("gssapi-with-mic"), number(1), text("x"))),
		asMessages(message(80, text("tcpip-forward"), yes, text("0.0.0.0"), number(22))),
		asMessages(message(80, text("no-more-sessions@openssh.com"), yes), session),
		asMessages(session, request("env", text("LANG", "C")), request("pty-req", text("xterm"), number(80, 24, 0, 0), text("\x00")),
			request("exec", text("true")), request("window-change", number(1, 1, 0, 0)), request("signal", text("TERM"))),
		asMessages(session, request("shell"), message(94, number(0), text("0123456789")), message(96, number(0)), message(97, number(0))),
		asMessages(session, request("subsystem", text("sftp")), message(95, number(0, 1), text("x")), message(93, number(0, 1<<31))),
		asMessages(message(90, text("direct-tcpip"), number(0, 1<<20, 1<<15), text("10.0.0.1"), number(22), text("x"), number(1)),
			message(94, number(0), text("x"))),
		asMessages(message(91, number(7, 7, 7, 7)), message(92, number(7, 1), text("", "")), message(99, number(7)),
			message(100, number(7)), message(81)),
	}
}
