package cloud

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const nodeTag = "node-of"

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// userData returns the user data that a gardenlet gives to a bastion.
func userData(key ssh.Signer) []byte {
	return fmt.Appendf(nil, `#!/bin/bash -eu
id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo "%s" > /home/gardener/.ssh/authorized_keys
chmod 700 /home/gardener/.ssh
chmod 600 /home/gardener/.ssh/authorized_keys
chown -R gardener:gardener /home/gardener/.ssh
mkdir -p /etc/sudoers.d
echo "gardener ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/99-gardener-user
chmod 440 /etc/sudoers.d/99-gardener-user
systemctl start sshd || systemctl start ssh
`, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))))
}

func from(cidrs ...string) (rules bastionspec.Ingress) {
	for _, cidr := range cidrs {
		rules = append(rules, bastionspec.Rule{CIDR: netip.MustParsePrefix(cidr)})
	}
	return rules
}

func newBastion(t testing.TB, c *Cloud, id, network string, key ssh.Signer, cidrs ...string) Instance {
	t.Helper()
	ensure(t, c, InstanceSpec{
		ID: id, Network: network, UserData: userData(key),
		Public: &PublicSpec{Ingress: from(cidrs...), Forward: map[string]string{nodeTag: network}},
	})
	runs(t, c, id)
	i, _ := c.Instance(id)
	if i.Message != "" {
		t.Fatalf("the user data of %s: %s", id, i.Message)
	}
	return i
}

func newNode(t testing.TB, c *Cloud, id, network string, key ssh.Signer) Instance {
	t.Helper()
	i := ensure(t, c, InstanceSpec{ID: id, Network: network, UserData: userData(key), Tags: map[string]string{nodeTag: network}})
	runs(t, c, id)
	return i
}

// dialFrom connects to a public address from an address of the host.
func dialFrom(t testing.TB, source string, to netip.AddrPort) (net.Conn, error) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: testutil.Timeout}
	return d.DialContext(t.Context(), "tcp4", to.String())
}

func hostKey(t testing.TB, c *Cloud, id string) ssh.PublicKey {
	t.Helper()
	m, ok := c.Machine(id)
	if !ok {
		t.Fatalf("%s does not run", id)
	}
	return m.HostKey()
}

func login(raw net.Conn, key ssh.Signer, host ssh.PublicKey) (*ssh.Client, error) {
	conn, channels, requests, err := ssh.NewClientConn(raw, "host", &ssh.ClientConfig{
		User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(host),
	})
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// connect opens an SSH connection to a bastion.
func connect(t testing.TB, c *Cloud, bastion Instance, source string, key ssh.Signer) (*ssh.Client, error) {
	t.Helper()
	raw, err := dialFrom(t, source, bastion.PublicAddress)
	if err != nil {
		return nil, err
	}
	client, err := login(raw, key, hostKey(t, c, bastion.ID))
	if err == nil {
		t.Cleanup(func() { _ = client.Close() })
	}
	return client, err
}

func mustConnect(t testing.TB, c *Cloud, bastion Instance, source string, key ssh.Signer) *ssh.Client {
	t.Helper()
	client, err := connect(t, c, bastion, source, key)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func output(t testing.TB, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// isCut fails the test if a connection does not end soon.
func isCut(t testing.TB, what string, client *ssh.Client) {
	t.Helper()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = client.Wait() }()
	select {
	case <-ended:
	case <-time.After(testutil.Timeout):
		t.Errorf("%s: the connection has not ended", what)
	}
}

func TestBastionKeys(t *testing.T) {
	c := open(t, t.TempDir())
	newNetwork(t, c, "n")
	mine, nodes := newKey(t), newKey(t)
	b, node := newBastion(t, c, "b", "n", mine, "127.0.0.1/32"), newNode(t, c, "i", "n", nodes)
	if !b.PublicAddress.Addr().IsLoopback() || node.PublicAddress.IsValid() {
		t.Errorf("public addresses %s, %s", b.PublicAddress, node.PublicAddress)
	}
	for name, key := range map[string]ssh.Signer{"another user's": newKey(t), "the nodes'": nodes} {
		if _, err := connect(t, c, b, "127.0.0.1", key); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("%s key: %v", name, err)
		}
	}
	client := mustConnect(t, c, b, "127.0.0.1", mine)
	if got := output(t, client, "id -un; sudo id -un; hostname; wc -l < .ssh/authorized_keys"); got != "gardener\nroot\nb\n1" {
		t.Errorf("on the bastion: %q", got)
	}
	for name, test := range map[string]struct {
		key   ssh.Signer
		opens bool
	}{"the bastion's": {mine, false}, "the nodes'": {nodes, true}} {
		raw, err := client.Dial("tcp", netip.AddrPortFrom(node.Address, 22).String())
		if err != nil {
			t.Fatal(err)
		}
		inner, err := login(raw, test.key, hostKey(t, c, "i"))
		if (err == nil) != test.opens {
			t.Errorf("a node with %s key: %v", name, err)
		}
		if err == nil {
			if got := output(t, inner, "hostname; echo $SSH_CLIENT"); !strings.HasPrefix(got, "i\n"+b.Address.String()+" ") {
				t.Errorf("on the node: %q", got)
			}
		}
	}
}

// refusedUnread fails the test if the server does not close the connection, or sends a byte.
func refusedUnread(t *testing.T, source string, to netip.AddrPort) {
	t.Helper()
	raw, err := dialFrom(t, source, to)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(testutil.Timeout))
	if got, err := io.ReadAll(raw); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s is told %q, %v", source, got, err)
	}
}

func TestBastionIngress(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	newNetwork(t, c, "n")
	key := newKey(t)
	b := newBastion(t, c, "b", "n", key, "127.0.0.1/32", "127.0.0.3/32")
	stays, goes := mustConnect(t, c, b, "127.0.0.3", key), mustConnect(t, c, b, "127.0.0.1", key)
	// This connection has not authenticated yet.
	half, err := dialFrom(t, "127.0.0.1", b.PublicAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	refusedUnread(t, "127.0.0.2", b.PublicAddress)
	rules := append(from("127.0.0.3/32"),
		bastionspec.Rule{CIDR: netip.MustParsePrefix("127.0.0.0/29"), Except: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err := c.UpdateIngress(t.Context(), "b", rules); err != nil {
		t.Fatal(err)
	}
	isCut(t, "not allowed any more", goes)
	_ = half.SetDeadline(time.Now().Add(testutil.Timeout))
	if _, err := io.ReadAll(half); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("an unauthenticated connection is open")
	}
	if got := output(t, stays, "echo here"); got != "here" {
		t.Errorf("who is still allowed: %q", got)
	}
	refusedUnread(t, "127.0.0.1", b.PublicAddress)
	mustConnect(t, c, b, "127.0.0.2", key)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	runs(t, c, "b")
	refusedUnread(t, "127.0.0.1", b.PublicAddress)
	mustConnect(t, c, b, "127.0.0.2", key)
	if err := c.UpdateIngress(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	refusedUnread(t, "127.0.0.2", b.PublicAddress)
	newNode(t, c, "i", "n", key)
	if c.UpdateIngress(t.Context(), "i", nil) == nil || !errors.Is(c.UpdateIngress(t.Context(), "x", nil), ErrNotFound) {
		t.Error("the ingress of a node, or of an unknown instance, can be changed")
	}
}

func TestBastionForwards(t *testing.T) {
	c := open(t, t.TempDir())
	newNetwork(t, c, "n")
	if err := c.EnsureNetwork(t.Context(), "other", netip.MustParsePrefix("10.251.0.0/24")); err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	b, second := newBastion(t, c, "b", "n", key, "127.0.0.1/32"), newBastion(t, c, "b2", "n", key, "0.0.0.0/0")
	node, foreign := newNode(t, c, "i", "n", key), newNode(t, c, "o", "other", key)
	plain := ensure(t, c, InstanceSpec{ID: "plain", Network: "n", UserData: userData(key)})
	runs(t, c, "plain")
	onHost, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer onHost.Close()
	client := mustConnect(t, c, b, "127.0.0.1", key)
	ssh22 := func(a netip.Addr) string { return netip.AddrPortFrom(a, 22).String() }
	for name, to := range map[string]string{
		"another port":          netip.AddrPortFrom(node.Address, 10250).String(),
		"another network":       ssh22(foreign.Address),
		"no node":               ssh22(plain.Address),
		"no instance":           "10.250.0.200:22",
		"the router":            "10.250.0.1:22",
		"itself":                ssh22(b.Address),
		"itself, in public":     b.PublicAddress.String(),
		"another bastion":       ssh22(second.Address),
		"another, in public":    second.PublicAddress.String(),
		"the host":              onHost.Addr().String(),
		"the host's port 22":    "127.0.0.1:22",
		"a name":                "localhost:22",
		"the node's name":       "i:22",
		"the node, in disguise": "[::ffff:" + node.Address.String() + "]:22",
		"every address":         "0.0.0.0:22",
	} {
		host, port, _ := net.SplitHostPort(to)
		var refused *ssh.OpenChannelError
		if _, err := client.Dial("tcp", to); !errors.As(err, &refused) || refused.Reason != ssh.Prohibited {
			t.Errorf("%s, %s port %s: %v", name, host, port, err)
		}
	}
	_ = onHost.(*net.TCPListener).SetDeadline(time.Now())
	if _, err := onHost.Accept(); err == nil {
		t.Error("a client reached the host's listener")
	}
	if conn, err := client.Dial("tcp", ssh22(node.Address)); err != nil {
		t.Errorf("the node: %v", err)
	} else {
		_ = conn.Close()
	}
	if _, err := c.Dial(t.Context(), "n", netip.AddrPortFrom(b.Address, 22)); err == nil {
		t.Error("the bastion answers in its network")
	}
	if l, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Errorf("remote forwarding: %s", l.Addr())
	}
	if _, err := client.Dial("unix", "/var/run/docker.sock"); err == nil {
		t.Error("a socket is forwarded")
	}
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	x11 := ssh.Marshal(struct {
		Single           bool
		Protocol, Cookie string
		Screen           uint32
	}{false, "MIT-MAGIC-COOKIE-1", "00", 0})
	for request, payload := range map[string][]byte{"auth-agent-req@openssh.com": nil, "x11-req": x11,
		"subsystem": ssh.Marshal(struct{ Name string }{"netconf"})} {
		if ok, err := session.SendRequest(request, true, payload); ok || err != nil {
			t.Errorf("%s: %t, %v", request, ok, err)
		}
	}
}

// TestBastionRestart verifies that a bastion keeps its public address and host key over a restart, and has another address, for good,
// once another listener has taken the first.
func TestBastionRestart(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	c := open(t, dir)
	newNetwork(t, c, "n")
	b := newBastion(t, c, "b", "n", key, "127.0.0.1/32")
	host := hostKey(t, c, "b")
	restarted := func() netip.AddrPort {
		t.Helper()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = open(t, dir)
		<-c.Ready("b")
		i, _ := c.Instance("b")
		if i.State != Running || i.Message != "" {
			t.Fatalf("it is %+v", i)
		}
		raw, err := dialFrom(t, "127.0.0.1", i.PublicAddress)
		if err != nil {
			t.Fatal(err)
		}
		client, err := login(raw, key, host)
		if err != nil {
			t.Fatalf("with the host key of before: %v", err)
		}
		_ = client.Close()
		return i.PublicAddress
	}
	if at := restarted(); at != b.PublicAddress {
		t.Errorf("it was at %s, and is at %s", b.PublicAddress, at)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp4", b.PublicAddress.String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c = open(t, dir)
	moved := restarted()
	if moved == b.PublicAddress {
		t.Error("it is where another program listens")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if at := restarted(); at != moved {
		t.Errorf("it was at %s, and is at %s", moved, at)
	}
}

func TestBastionDelete(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	c := open(t, dir)
	newNetwork(t, c, "n")
	node := newNode(t, c, "i", "n", key)
	goroutinesEnded := testutil.Goroutines(t)
	b := newBastion(t, c, "b", "n", key, "127.0.0.1/32")
	client := mustConnect(t, c, b, "127.0.0.1", key)
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start("sleep 1000"); err != nil {
		t.Fatal(err)
	}
	raw, err := client.Dial("tcp", netip.AddrPortFrom(node.Address, 22).String())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := login(raw, key, hostKey(t, c, "i"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteInstance(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	isCut(t, "the bastion", client)
	isCut(t, "the node behind it", inner)
	if conn, err := dialFrom(t, "127.0.0.1", b.PublicAddress); err == nil {
		t.Errorf("the address has a listener: %v", conn.Close())
	}
	goroutinesEnded(testutil.Timeout)
	if _, err := os.Stat(filepath.Join(dir, "instances", "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left on the disk: %v", err)
	}
	// A bastion that waits for its turn to boot closes its listener, too.
	for range MaxBoots {
		c.boots <- struct{}{}
	}
	waiting := ensure(t, c, InstanceSpec{ID: "w", Network: "n", Public: &PublicSpec{}})
	if err := c.DeleteInstance(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if conn, err := dialFrom(t, "127.0.0.1", waiting.PublicAddress); err == nil {
		t.Errorf("the address has a listener: %v", conn.Close())
	}
	for range MaxBoots {
		<-c.boots
	}
}

// Programs run outside of the sandbox, so bastions must not run them: their users are root there.
func TestBastionRunsNoPrograms(t *testing.T) {
	c, err := Open(Config{Dir: t.TempDir(), Log: logr.Discard(), Programs: map[string]machine.Program{
		"/opt/bin/kubelet": func(context.Context, *machine.Machine, []string) error { t.Error("it runs"); return nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	newNetwork(t, c, "n")
	newBastion(t, c, "b", "n", newKey(t))
	m, _ := c.Machine("b")
	if err := m.FS().WriteFile(
		"/etc/systemd/system/k.service", []byte("[Service]\nType=oneshot\nExecStart=/opt/bin/kubelet\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.Units().Start(t.Context(), "k"); err == nil {
		t.Error("it is started")
	}
}

// TestManyBastions runs many bastions at once, each with an address of its own, and checks how much memory they use.
func TestManyBastions(t *testing.T) {
	if !testutil.OwnProcess(t) {
		return
	}
	const count = 200
	c, key := open(t, t.TempDir()), newKey(t)
	if err := c.EnsureNetwork(t.Context(), "n", netip.MustParsePrefix("10.250.0.0/16")); err != nil {
		t.Fatal(err)
	}
	before := memory()
	at := map[netip.AddrPort]bool{}
	for n := range count {
		i := ensure(t, c, InstanceSpec{ID: fmt.Sprint("b", n), Network: "n", UserData: userData(key),
			Public: &PublicSpec{Ingress: from("127.0.0.1/32")}})
		at[i.PublicAddress] = true
	}
	for n := range count {
		<-c.Ready(fmt.Sprint("b", n))
	}
	each := int64(memory()-before) / count / 1024
	t.Logf("%d bastions: %d KiB each", count, each)
	if len(at) != count || each > 1024 {
		t.Errorf("%d public addresses, %d KiB each", len(at), each)
	}
}
