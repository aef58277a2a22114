package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
)

// connectTimeout is the timeout of each step of a connection.
const connectTimeout = 20 * time.Second

// Route is the way to a node.
type Route struct {
	Bastion *operationsv1alpha1.Bastion
	Key     KeyPair
	// Node is the target, and NodeKeys are the private keys for it.
	Node     Node
	NodeKeys [][]byte
	// Network is the Shoot's technical ID. The names of nodes are unique in it.
	Network  string
	HostKeys *HostKeys
}

// bastionAlias returns the name for the bastion's host key. Another Bastion of the same name is another machine.
func (r Route) bastionAlias() string { return "bastion-" + string(r.Bastion.UID) }

func (r Route) nodeAlias(node Node) string { return node.Name + "." + r.Network }

// Tunnel is an open connection to a node, through a bastion.
type Tunnel struct {
	bastion, node *ssh.Client
	route         Route
	stop          func() bool
}

// Dial connects to the node through the bastion. The connections end with the context.
func (r Route) Dial(ctx context.Context) (*Tunnel, error) {
	endpoint, err := Endpoint(r.Bastion)
	if err != nil {
		return nil, err
	}
	if r.Key.Signer == nil {
		return nil, errors.New("the private key for the bastion is encrypted or missing: use --print, with an agent that has it")
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bastion %s: %w", r.Bastion.Name, err)
	}
	bastion, err := handshake(ctx, conn, endpoint, r.HostKeys.Check(r.bastionAlias()), r.Key.Signer)
	if err != nil {
		return nil, fmt.Errorf("logging in to the bastion %s at %s: %w", r.Bastion.Name, endpoint, explain(err))
	}
	node, err := r.dialNode(ctx, bastion)
	if err != nil {
		_ = bastion.Close()
		return nil, err
	}
	t := &Tunnel{bastion: bastion, node: node, route: r}
	t.stop = context.AfterFunc(ctx, t.cut)
	return t, nil
}

func (r Route) dialNode(ctx context.Context, bastion *ssh.Client) (*ssh.Client, error) {
	signers := make([]ssh.Signer, len(r.NodeKeys))
	for i, key := range r.NodeKeys {
		signer, err := ssh.ParsePrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("using the key for the nodes: %w", err)
		}
		signers[i] = signer
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := bastion.DialContext(ctx, "tcp", r.Node.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("connecting from the bastion %s to the node %s (%s): %w", r.Bastion.Name, r.Node.Name, r.Node.Address, err)
	}
	node, err := handshake(ctx, conn, r.Node.Endpoint(), r.HostKeys.Check(r.nodeAlias(r.Node)), signers...)
	if err != nil {
		return nil, fmt.Errorf("logging in to the node %s: %w", r.Node.Name, err)
	}
	return node, nil
}

// handshake logs in on a connection, and closes the connection if that fails.
func handshake(ctx context.Context, conn net.Conn, address string, check ssh.HostKeyCallback, signers ...ssh.Signer) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	config := &ssh.ClientConfig{User: User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)}, HostKeyCallback: check}
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

// explain adds what the user can do about a bastion that refuses the login.
func explain(err error) error {
	switch {
	case errors.Is(err, io.EOF) || strings.Contains(err.Error(), "connection reset"):
		return fmt.Errorf("it closed the connection: is your address in one of its ranges (--cidr)? %w", err)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Errorf("it does not take the key: a bastion takes the one that it was made for only (--private-key-file). %w", err)
	}
	return err
}

func (t *Tunnel) cut() {
	_ = t.node.Close()
	_ = t.bastion.Close()
}

// Close ends the connections.
func (t *Tunnel) Close() {
	t.stop()
	t.cut()
}
