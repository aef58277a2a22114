package sshd

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// directTCPIP is the request of a client for a direct-tcpip channel (RFC 4254, section 7.2).
type directTCPIP struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

const maxHostSize = 255

// openForward opens a connection for a client, if the machine forwards and the key allows it.
func (c *connection) openForward(ctx context.Context, channel ssh.NewChannel, closed func()) {
	var wanted directTCPIP
	reason, message := ssh.Prohibited, ""
	switch err := ssh.Unmarshal(channel.ExtraData(), &wanted); {
	case c.server.cfg.Forward == nil:
		message = "this machine forwards no connections"
	case c.login.noForwarding:
		message = "the key does not allow to forward connections"
	case err != nil || wanted.Host == "" || len(wanted.Host) > maxHostSize || wanted.Port == 0 || wanted.Port > 65535:
		reason, message = ssh.ConnectionFailed, "this is no address"
	}
	if message != "" {
		defer closed()
		refuse(channel, reason, message)
		return
	}
	c.group.Go(func() {
		defer closed()
		c.forward(ctx, channel, wanted)
	})
}

func (c *connection) forward(ctx context.Context, channel ssh.NewChannel, wanted directTCPIP) {
	target, err := c.server.cfg.Forward(ctx, wanted.Host, wanted.Port)
	if err != nil {
		reason := ssh.ConnectionFailed
		if errors.Is(err, ErrProhibited) {
			reason = ssh.Prohibited
		}
		refuse(channel, reason, err.Error())
		return
	}
	defer target.Close()
	client, requests, err := channel.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	c.group.Go(func() { ssh.DiscardRequests(requests) })
	stop := context.AfterFunc(ctx, func() { _ = target.Close() })
	defer stop()
	stream := &activity{stream: client, c: c}
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(target, stream)
		if err != nil {
			_ = target.Close()
		} else {
			closeWrite(target)
		}
	})
	if _, err := io.Copy(stream, target); err != nil {
		_ = target.Close()
		_ = client.Close()
	} else {
		_ = client.CloseWrite()
	}
	up.Wait()
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
