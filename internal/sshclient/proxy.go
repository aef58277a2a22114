package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Proxy connects in and out to the address of a Bastion, and keeps the Bastion alive until the connection ends. It
// serves as OpenSSH's ProxyCommand.
func (c *Client) Proxy(ctx context.Context, key client.ObjectKey, address string, in io.Reader, out io.Writer, report func(error)) error {
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to the bastion %s: %w", key.Name, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	defer func() { cancel(); <-kept }()
	go func() {
		defer close(kept)
		bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		c.KeepAlive(ctx, bastion, report)
	}()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() { // ends with in, or when the connection is closed and something more is read
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("reading from the bastion %s: %w", key.Name, err)
	}
	return nil
}

// CurrentNodeKeys returns the private keys for the nodes of the Shoot that a Bastion leads to.
func (c *Client) CurrentNodeKeys(ctx context.Context, key client.ObjectKey) ([][]byte, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := c.garden.Get(ctx, key, bastion); err != nil {
		return nil, fmt.Errorf("reading the bastion %s: %w", key, err)
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: bastion.Spec.ShootRef.Name}}
	return c.NodeKeys(ctx, shoot)
}
