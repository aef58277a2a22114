package controlplane

import (
	"maps"
	"net"
	"sync"
	"time"
)

// shutdownTimeout is how long a server that is stopped waits for requests in progress. Watches would continue forever,
// so the remaining requests are cut off.
const shutdownTimeout = time.Second

// connections is a listener that records the connections that it has accepted, so that none of them outlives the
// server.
type connections struct {
	net.Listener
	mu     sync.Mutex
	open   map[*accepted]struct{}
	closed bool
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*accepted]struct{}{}}
}

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

// cut closes all open connections, and those that are accepted later.
func (c *connections) cut() {
	c.mu.Lock()
	c.closed = true
	open := maps.Clone(c.open)
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}

type accepted struct {
	net.Conn
	of *connections
}

// Close closes the connection and removes it from the open ones.
func (c *accepted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
