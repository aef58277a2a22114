package sshclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sshServer is an SSH server that accepts one key. It forwards all connections to one listener, whatever their address
// is.
type sshServer struct {
	net.Listener
	config  *ssh.ServerConfig
	forward string
	wg      sync.WaitGroup
}

func newServer(t *testing.T, allowed ssh.PublicKey, forward string) *sshServer {
	t.Helper()
	host, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sshServer{Listener: l, forward: forward, config: &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), allowed.Marshal()) {
				return nil, errors.New("another key")
			}
			return nil, nil
		}}}
	s.config.AddHostKey(host.Signer)
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.wg.Wait() })
	return s
}

func (s *sshServer) serve(conn net.Conn) {
	defer conn.Close()
	c, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	defer c.Close()
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		switch channel.ChannelType() {
		case "session":
			go session(channel)
		case "direct-tcpip":
			if s.forward == "" {
				_ = channel.Reject(ssh.Prohibited, "no")
				continue
			}
			go s.pass(channel)
		}
	}
}

func (s *sshServer) pass(channel ssh.NewChannel) {
	there, err := net.Dial("tcp", s.forward)
	if err != nil {
		_ = channel.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer there.Close()
	here, requests, err := channel.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
	_, _ = io.Copy(here, there)
	_ = here.Close()
}

// session writes the command and ends with 7. "hang" does not end, "die" ends by a signal, and "lose" without a status.
func session(channel ssh.NewChannel) {
	c, requests, err := channel.Accept()
	if err != nil {
		return
	}
	for request := range requests {
		_ = request.Reply(request.Type == "exec", nil)
		if request.Type != "exec" {
			continue
		}
		command := string(request.Payload[4:])
		_, _ = io.WriteString(c, command)
		switch command {
		case "hang":
			continue
		case "die":
			_, _ = c.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal string
				Core   bool
				A, B   string
			}{Signal: "TERM"}))
		case "lose":
		default:
			_, _ = c.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, 7))
		}
		_ = c.Close()
	}
}

// route returns a route through a bastion to a node, both of which accept its keys.
func route(t *testing.T) (Route, *sshServer) {
	t.Helper()
	bastionKey, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	nodeKey, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	former, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	node := newServer(t, nodeKey.Signer.PublicKey(), "")
	bastion := newServer(t, bastionKey.Signer.PublicKey(), node.Addr().String())
	hosts, err := NewHostKeys("")
	if err != nil {
		t.Fatal(err)
	}
	return Route{Key: bastionKey, NodeKeys: [][]byte{former.PEM, nodeKey.PEM}, HostKeys: hosts,
		Node: Node{Name: "n", Address: "10.0.0.2"}, Network: "x", Bastion: at(bastion)}, bastion
}

func at(bastion *sshServer) *operationsv1alpha1.Bastion {
	_, port, _ := net.SplitHostPort(bastion.Addr().String())
	return &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u", Annotations: map[string]string{annotationSSHPort: port}},
		Status:     operationsv1alpha1.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "127.0.0.1"}}}
}

func TestRun(t *testing.T) {
	r, _ := route(t)
	for command, want := range map[string]struct {
		status int
		err    error
	}{"x": {7, nil}, "die": {128 + 15, nil}, "lose": {0, ErrConnectionLost}, "hang": {0, context.Canceled}} {
		t.Run(command, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tunnel, err := r.Dial(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tunnel.Close()
			var out bytes.Buffer
			var to io.Writer = &out
			if command == "hang" {
				to = writer(func() { cancel() })
			}
			// The input stays open: the session must end nevertheless.
			in, feed := io.Pipe()
			defer feed.Close()
			status, err := tunnel.Run(ctx, Session{In: in, Out: to, Err: io.Discard, Command: command})
			if status != want.status || !errors.Is(err, want.err) || command != "hang" && out.String() != command {
				t.Errorf("%d, %v, output %q", status, err, out.String())
			}
		})
	}
}

type writer func()

func (w writer) Write(data []byte) (int, error) { w(); return len(data), nil }

func TestDialIsRefused(t *testing.T) {
	other, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*Route){
		"another host key than before": func(r *Route) {
			before, err := r.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before.Close()
			// Another machine answers for the same bastion.
			impostor := newServer(t, r.Key.Signer.PublicKey(), "")
			r.Bastion = at(impostor)
		},
		"takes the one that it was made for only": func(r *Route) { r.Key = other },
		"logging in to the node n":                func(r *Route) { r.NodeKeys = r.NodeKeys[:1] },
		"encrypted or missing":                    func(r *Route) { r.Key.Signer = nil },
		"has no address":                          func(r *Route) { r.Bastion.Status.Ingress = nil },
		"is your address in one of its ranges": func(r *Route) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				if conn, err := l.Accept(); err == nil {
					_ = conn.Close()
				}
			}()
			r.Bastion = at(&sshServer{Listener: l})
		},
	} {
		t.Run(says, func(t *testing.T) {
			r, _ := route(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			change(&r)
			tunnel, err := r.Dial(ctx)
			if err == nil {
				tunnel.Close()
			}
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestForward(t *testing.T) {
	r, _ := route(t)
	ctx := t.Context()
	tunnel, err := r.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	reports := make(chan error, 10)
	report := func(err error) { reports <- err }
	// Port 22 of a node is reached from the bastion.
	address, stop, err := tunnel.Forward(ctx, Forward{"127.0.0.1:0", "10.0.0.9:22"}, report)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	banner := make([]byte, 4)
	if _, err := io.ReadFull(conn, banner); err != nil || string(banner) != "SSH-" {
		t.Errorf("%q, %v", banner, err)
	}
	stop() // with a connection that is open
	if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	_ = conn.Close()
	// Other ports are reached from the node, which refuses.
	address, stop, err = tunnel.Forward(ctx, Forward{"127.0.0.1:0", "localhost:80"}, report)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if conn, err = net.Dial("tcp", address.String()); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-reports; !strings.Contains(err.Error(), "does not forward") {
		t.Error(err)
	}
}
