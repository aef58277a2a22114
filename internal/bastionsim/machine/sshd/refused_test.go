package sshd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestRefusedGlobalRequests(t *testing.T) {
	client := serve(t, nil).dial(t)
	for _, name := range []string{
		"tcpip-forward", "cancel-tcpip-forward", "streamlocal-forward@openssh.com", "hostkeys-prove-00@openssh.com", "unknown@example.com",
	} {
		ok, _, err := client.SendRequest(name, true, ssh.Marshal(struct {
			Host string
			Port uint32
		}{"0.0.0.0", 8080}))
		if ok || err != nil {
			t.Errorf("%s: %v, %v; want it refused", name, ok, err)
		}
	}
	if ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil); !ok || err != nil {
		t.Errorf("keepalive: %v, %v", ok, err)
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("remote forwarding works")
	}
}

func TestRefusedChannels(t *testing.T) {
	client := serve(t, nil).dial(t)
	for name, want := range map[string]ssh.RejectionReason{
		"direct-tcpip":                   ssh.Prohibited,
		"direct-streamlocal@openssh.com": ssh.Prohibited,
		"forwarded-tcpip":                ssh.Prohibited,
		"x11":                            ssh.Prohibited,
		"auth-agent@openssh.com":         ssh.Prohibited,
		"tun@openssh.com":                ssh.Prohibited,
		"unknown@example.com":            ssh.UnknownChannelType,
	} {
		_, _, err := client.OpenChannel(name, ssh.Marshal(directTCPIP{Host: "10.0.0.1", Port: 22}))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("%s: %v, want reason %v", name, err, want)
		}
	}
	if _, _, err := client.SendRequest("no-more-sessions@openssh.com", true, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.NewSession(); err == nil {
		t.Error("a session after no-more-sessions works")
	}
}

func TestRefusedSessionRequests(t *testing.T) {
	f := serve(t, nil)
	f.host.run = func(ctx context.Context, s *Session) Exit { <-ctx.Done(); return Exit{} }
	channel, requests, err := f.dial(t).OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	go func() { _, _ = io.Copy(io.Discard, channel.Stderr()) }()
	text := func(s string) []byte { return ssh.Marshal(struct{ S string }{s}) }
	pair := func(name, value string) []byte { return ssh.Marshal(struct{ N, V string }{name, value}) }
	check := func(name string, payload []byte, want bool) {
		t.Helper()
		if ok, err := channel.SendRequest(name, true, payload); ok != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", name, ok, err, want)
		}
	}
	check("auth-agent-req@openssh.com", nil, false)
	check("x11-req", nil, false)
	check("break", nil, false)
	check("subsystem", text("sftp"), false)
	check("signal", text("TERM"), false) // nothing runs
	check("window-change", ssh.Marshal(struct{ C, R, W, H uint32 }{80, 24, 0, 0}), false)
	check("pty-req", []byte("nonsense"), false)
	check("pty-req", ssh.Marshal(ptyRequest{Term: strings.Repeat("x", MaxTermSize+1)}), false)
	check("exec", []byte{1}, false)
	check("exec", text(""), false)
	check("exec", text(strings.Repeat("x", MaxCommandSize+1)), false)
	check("env", pair("LANG", strings.Repeat("x", MaxEnvSize)), false)
	for i := range MaxEnv {
		check("env", pair(fmt.Sprint("LC_", i), "x"), true)
	}
	check("env", pair("LANG", "x"), false)
	check("exec", text("sleep"), true)
	check("exec", text("sleep"), false) // a session runs one command
	check("shell", nil, false)
	check("pty-req", ssh.Marshal(ptyRequest{}), false) // too late
	check("signal", text("NONE"), false)
	check("signal", text("TERM"), true)
}

func TestForward(t *testing.T) {
	asked := make(chan string, 1)
	f := serve(t, func(c *Config) {
		c.Forward = func(_ context.Context, host string, port uint32) (net.Conn, error) {
			switch host {
			case "10.0.0.1":
				return nil, fmt.Errorf("%w: no", ErrProhibited)
			case "10.0.0.2":
				return nil, errors.New("no host there")
			}
			asked <- fmt.Sprint(host, " ", port)
			near, far := net.Pipe()
			go func() {
				_, _ = io.Copy(far, far)
				_ = far.Close()
			}()
			return near, nil
		}
	})
	client := f.dial(t)
	for host, want := range map[string]ssh.RejectionReason{"10.0.0.1": ssh.Prohibited, "10.0.0.2": ssh.ConnectionFailed,
		"": ssh.ConnectionFailed} {
		_, _, err := client.OpenChannel("direct-tcpip", ssh.Marshal(directTCPIP{Host: host, Port: 22}))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("to %q: %v, want reason %v", host, err, want)
		}
	}
	conn, err := client.Dial("tcp", "10.0.0.3:22")
	if err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "10.0.0.3 22" {
		t.Errorf("asked for %q", got)
	}
	_, _ = io.WriteString(conn, "hello")
	echo := make([]byte, 5)
	if _, err := io.ReadFull(conn, echo); err != nil || string(echo) != "hello" {
		t.Errorf("got back %q, %v", echo, err)
	}
	_ = conn.Close()

	f.host.files[keysFile] = "restrict " + f.host.files[keysFile]
	client = f.dial(t)
	if _, err := client.Dial("tcp", "10.0.0.3:22"); err == nil {
		t.Error("a restricted key forwards")
	}
	if err := newSession(t, client).RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("a restricted key gets a terminal")
	}
}

func TestChannelLimit(t *testing.T) {
	client := serve(t, nil).dial(t)
	var last *ssh.Session
	for range MaxChannels {
		last = newSession(t, client)
	}
	_, err := client.NewSession()
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("one channel too many: %v", err)
	}
	_ = last.Close()
	testutil.EventuallyTrue(t, "a channel is free again", func() bool {
		s, err := client.NewSession()
		if err == nil {
			_ = s.Close()
		}
		return err == nil
	})
}

// Clients that connect and do not log in are limited in number and time, and do not keep other clients out.
func TestStartupsAndGraceTime(t *testing.T) {
	f := serve(t, nil)
	before := f.dial(t)
	var waiting []net.Conn
	connect := func() {
		t.Helper()
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		waiting = append(waiting, conn)
		if _, err := io.ReadFull(conn, make([]byte, len(Version)+2)); err != nil {
			t.Fatalf("connection %d: %v", len(waiting), err)
		}
	}
	for range MaxStartups + 2 {
		connect()
	}
	for _, conn := range waiting[:2] {
		_, _ = io.Copy(io.Discard, conn) // ends, for the server closes it
	}
	f.dial(t) // takes the place of the third one
	_, _ = io.Copy(io.Discard, waiting[2])
	testutil.EventuallyTrue(t, "who has logged in waits no more", func() bool { return waitingLogins(f.server) < MaxStartups })
	connect() // takes no other client's place
	if _, _, err := before.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("who was logged in before is cut: %v", err)
	}
	_ = waiting[3].SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := waiting[3].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one that may wait: %v", err)
	}
	_ = waiting[3].SetReadDeadline(time.Time{})
	f.clock.Step(LoginGraceTime)
	for _, conn := range waiting {
		_, _ = io.Copy(io.Discard, conn)
	}
	f.dial(t)
}

// A client may try some keys, and is then disconnected.
func TestAuthenticationAttempts(t *testing.T) {
	f := serve(t, nil)
	var keys []ssh.Signer
	for range MaxAuthTries {
		keys = append(keys, newKey(t))
	}
	try := func(keys ...ssh.Signer) error {
		client, err := ssh.Dial("tcp", f.addr, f.config("gardener", ssh.PublicKeys(keys...)))
		if err == nil {
			_ = client.Close()
		}
		return err
	}
	if err := try(append(keys[:MaxAuthTries-1:MaxAuthTries-1], f.key)...); err != nil {
		t.Errorf("the right key as the last one that may be tried: %v", err)
	}
	if try(append(keys, f.key)...) == nil {
		t.Errorf("a client has tried %d keys, and is let in", MaxAuthTries)
	}
}

// watched is a client that counts the keepalive requests of the server, and either answers them or does not.
type watched struct {
	asked int
	gone  bool
}

func (f *fixture) watched(t *testing.T, answer bool) *watched {
	t.Helper()
	host := netip.MustParseAddrPort("127.0.0.1:22")
	near, far := memnet.Pipe(host, host)
	go f.server.handle(t.Context(), far, f.server.admit(far))
	_, _, requests, err := ssh.NewClientConn(near, "host", f.config("gardener", ssh.PublicKeys(f.key)))
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	go func() {
		for request := range requests {
			w.asked++
			if answer {
				_ = request.Reply(false, nil)
			}
		}
		w.gone = true
	}()
	synctest.Wait()
	return w
}

// A client that does not answer is disconnected, and so is an idle one. A client that answers stays.
func TestKeepAliveAndIdle(t *testing.T) { synctest.Test(t, testKeepAliveAndIdle) }

func testKeepAliveAndIdle(t *testing.T) {
	f := newServer(t, nil)
	pass := func(d time.Duration) {
		f.clock.Step(d)
		synctest.Wait()
	}
	client := f.watched(t, false)
	for range KeepAliveCountMax {
		pass(KeepAliveInterval)
		if client.asked != 1 || client.gone {
			t.Fatalf("the silent client: %+v", client)
		}
	}
	pass(KeepAliveInterval)
	if !client.gone || !f.host.journaled("does not answer") {
		t.Errorf("the silent client: %+v; journal: %q", client, f.host.journal)
	}

	client = f.watched(t, true)
	for asked := range 2 * KeepAliveCountMax {
		pass(KeepAliveInterval)
		if client.asked != asked+1 || client.gone {
			t.Fatalf("the client that answers: %+v", client)
		}
	}
	pass(IdleTimeout)
	if !client.gone || !f.host.journaled("idle") {
		t.Errorf("the idle client: %+v; journal: %q", client, f.host.journal)
	}
}

func TestAdmitAndDisconnect(t *testing.T) {
	admitted := make(chan bool, 1)
	f := serve(t, func(c *Config) { c.Admit = func(net.Addr) bool { return <-admitted } })
	admitted <- false
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("a client behind the firewall is told %q", got)
	}
	admitted <- true
	client := f.dial(t)
	f.server.DisconnectIf(func(net.Addr) bool { return false })
	if _, _, err := client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Fatalf("cut although its address is admitted: %v", err)
	}
	f.server.DisconnectIf(func(net.Addr) bool { return true })
	_ = client.Wait()
}

// The server offers no weak algorithm, and its key exchange is strict: a message that is not a part of the key exchange
// ends the connection.
func TestOfferAndStrictKeyExchange(t *testing.T) {
	f := serve(t, nil)
	start := func() *rawClient {
		t.Helper()
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		c := &rawClient{conn: conn}
		if err := c.hello(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := start()
	if _, err := c.readOffer(); err != nil {
		t.Fatal(err)
	}
	if found := c.offer.weakOnes(); len(found) > 0 {
		t.Errorf("the server offers %v", found)
	}
	if !slices.Contains(c.offer.Kex, "kex-strict-s-v00@openssh.com") || !slices.Equal(c.offer.HostKey, []string{ssh.KeyAlgoED25519}) {
		t.Errorf("the server offers the key exchanges %v and the host keys %v", c.offer.Kex, c.offer.HostKey)
	}
	const strict = "kex-strict-c-v00@openssh.com"
	for name, sent := range map[string][][]byte{
		"before": {{msgIgnore, 0, 0, 0, 0}, rawOffer(strict)},
		"within": {rawOffer(strict), {msgIgnore, 0, 0, 0, 0}},
	} {
		c := start()
		for _, message := range sent {
			if err := c.send(message); err != nil {
				t.Fatal(err)
			}
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c.r); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection goes on after a message %s the key exchange", name)
		}
	}
	c = start()
	if err := errors.Join(c.exchange(), c.authenticate("gardener", f.key)); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "the client that did all this logs in otherwise", func() bool { return f.host.journaled("Accepted publickey") })
}

func waitingLogins(s *Server) int {
	s.startups.mu.Lock()
	defer s.startups.mu.Unlock()
	return s.startups.waiting.Len()
}
