package sshd

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/semaphore"
)

// connection is an authenticated connection.
type connection struct {
	server *Server
	conn   *ssh.ServerConn
	login  login
	group  sync.WaitGroup

	channels       *semaphore.Weighted
	noMoreSessions atomic.Bool
	lastActive     atomic.Int64 // nanoseconds of the clock
}

// serve handles what the client asks for until the connection ends.
func (c *connection) serve(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	c.active()
	c.group.Go(func() { c.globalRequests(requests) })
	c.group.Go(func() { c.watch(ctx) })
	for channel := range channels {
		c.open(ctx, channel)
	}
	cancel()
	_ = c.conn.Close()
	c.group.Wait()
}

// globalRequests answers requests that belong to no channel. It grants no forwarding.
func (c *connection) globalRequests(requests <-chan *ssh.Request) {
	for request := range requests {
		switch request.Type {
		case "no-more-sessions@openssh.com":
			c.noMoreSessions.Store(true)
			_ = request.Reply(true, nil)
		case "keepalive@openssh.com":
			_ = request.Reply(true, nil)
		default: // tcpip-forward, streamlocal-forward@openssh.com, hostkeys-prove-00@openssh.com and unknown ones
			_ = request.Reply(false, nil)
		}
	}
}

// open accepts or refuses a channel. It does not wait for anything but the client to read.
func (c *connection) open(ctx context.Context, channel ssh.NewChannel) {
	if !c.channels.TryAcquire(1) {
		refuse(channel, ssh.ResourceShortage, fmt.Sprintf("a connection may have %d channels", MaxChannels))
		return
	}
	closed := func() { c.channels.Release(1) }
	switch channel.ChannelType() {
	case "session":
		c.openSession(ctx, channel, closed)
	case "direct-tcpip":
		c.openForward(ctx, channel, closed)
	case "direct-streamlocal@openssh.com", "forwarded-tcpip", "x11", "auth-agent@openssh.com", "tun@openssh.com":
		defer closed()
		refuse(channel, ssh.Prohibited, "not available on this machine")
	default:
		defer closed()
		refuse(channel, ssh.UnknownChannelType, "unknown channel type")
	}
}

func refuse(channel ssh.NewChannel, reason ssh.RejectionReason, message string) {
	_ = channel.Reject(reason, message[:min(len(message), maxMessage)])
}

func (c *connection) active() { c.lastActive.Store(c.server.cfg.Clock.Now().UnixNano()) }

// watch sends keepalive requests, and closes the connection if the client does not answer, or is idle for IdleTimeout.
func (c *connection) watch(ctx context.Context) {
	ticker := c.server.cfg.Clock.NewTicker(KeepAliveInterval)
	defer ticker.Stop()
	answered, asking, missed := make(chan struct{}, 1), false, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-answered:
			asking, missed = false, 0
		case now := <-ticker.C():
			if now.UnixNano()-c.lastActive.Load() >= int64(IdleTimeout) {
				c.server.cfg.Host.Journal(fmt.Sprintf("Closed the connection of %s: idle for %s", c.login.user.Name, IdleTimeout))
				_ = c.conn.Close()
				return
			}
			if asking {
				if missed++; missed >= KeepAliveCountMax {
					c.server.cfg.Host.Journal(fmt.Sprintf("Closed the connection of %s: the client does not answer", c.login.user.Name))
					_ = c.conn.Close()
					return
				}
				continue
			}
			asking = true
			c.group.Go(func() {
				// Any answer will do; an error means that the connection has ended.
				if _, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					answered <- struct{}{}
				}
			})
		}
	}
}

// activity is a stream of a channel that records when bytes pass. Unlike the Write of a channel, its Write may be
// called concurrently, because the output of a command and the echo of typed keys go to the same stream.
type activity struct {
	stream io.ReadWriter
	c      *connection
	mu     sync.Mutex // serializes writes
}

func (a *activity) Read(p []byte) (int, error) {
	n, err := a.stream.Read(p)
	if n > 0 {
		a.c.active()
	}
	return n, err
}

func (a *activity) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.stream.Write(p)
	if n > 0 {
		a.c.active()
	}
	return n, err
}
