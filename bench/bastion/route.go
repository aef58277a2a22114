package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// route is a way to a node: through a first SSH server to a second one. Bastions and the baseline are measured with
// the same code.
type route struct {
	bastion, node       string // addresses with ports
	bastionKey, nodeKey ssh.Signer
}

func (l *landscape) route(b *bastion) route {
	return route{bastion: b.address, node: net.JoinHostPort(l.node, "22"), bastionKey: b.key, nodeKey: l.nodeKey}
}

// tunnel is a connection to the node.
type tunnel struct{ bastion, node *ssh.Client }

func (t *tunnel) close() {
	_ = t.node.Close()
	_ = t.bastion.Close()
}

func (r route) dial() (*tunnel, error) {
	conn, err := net.DialTimeout("tcp", r.bastion, time.Minute)
	if err != nil {
		return nil, err
	}
	bastion, err := login(conn, r.bastion, r.bastionKey)
	if err != nil {
		return nil, fmt.Errorf("logging in at the bastion: %w", err)
	}
	through, err := bastion.Dial("tcp", r.node)
	if err != nil {
		return nil, errors.Join(err, bastion.Close())
	}
	node, err := login(through, r.node, r.nodeKey)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("logging in at the node: %w", err), bastion.Close())
	}
	return &tunnel{bastion, node}, nil
}

func login(conn net.Conn, address string, key ssh.Signer) (*ssh.Client, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // it is measured how long it takes
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return ssh.NewClient(c, channels, requests), nil
}

// prompt connects to the node, and returns when its shell prompts.
func (r route) prompt() error {
	t, err := r.dial()
	if err != nil {
		return err
	}
	defer t.close()
	session, err := t.node.NewSession()
	if err != nil {
		return err
	}
	output, err := session.StdoutPipe()
	if err != nil {
		return err
	}
	if _, err := session.StdinPipe(); err != nil { // stays open
		return err
	}
	if err := session.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
		return err
	}
	if err := session.Shell(); err != nil {
		return err
	}
	var shown []byte
	buffer := make([]byte, 1024)
	for !bytes.Contains(shown, []byte("$ ")) {
		n, err := output.Read(buffer)
		shown = append(shown, buffer[:n]...)
		if err != nil {
			return fmt.Errorf("waiting for a prompt after %q: %w", shown, err)
		}
	}
	return nil
}

// The commands that move bytes; the baseline's servers know them as well.
const (
	takeAll = "cat >/dev/null"
	giveAll = "head -c %d /dev/zero"
)

// move moves bytes to the node, or from it.
func (t *tunnel) move(bytes int, toNode bool) error {
	session, err := t.node.NewSession()
	if err != nil {
		return err
	}
	defer session.Close()
	if toNode {
		session.Stdin = io.LimitReader(zeros{}, int64(bytes))
		return session.Run(takeAll)
	}
	var got counter
	session.Stdout = &got
	if err := session.Run(fmt.Sprintf(giveAll, bytes)); err != nil {
		return err
	}
	if int(got) != bytes {
		return fmt.Errorf("%d bytes came, not %d", got, bytes)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
