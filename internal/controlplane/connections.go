package controlplane

import (
	"net"
	"sync"
	"time"
)

// shutdownTimeout is for how long a server that is stopped waits for requests that are in progress: watches do so for
// ever, as far as their clients are concerned. What is left then is cut.
const shutdownTimeout = time.Second

// connections is a listener that knows what it has accepted, so that nothing of it outlives the server.
type connections struct {
	net.Listener
	mu     sync.Mutex
	open   map[*accepted]struct{}
	closed bool
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*accepted]struct{}{}}
}

// Accept waits for the next connection.
func (c *connections) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &accepted{Conn: raw, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	c.open[conn] = struct{}{}
	return conn, nil
}

// cut closes whatever is open, and what may still come.
func (c *connections) cut() {
	c.mu.Lock()
	c.closed = true
	open := make([]*accepted, 0, len(c.open))
	for conn := range c.open {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

type accepted struct {
	net.Conn
	of *connections
}

// Close closes the connection and forgets it.
func (c *accepted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
