package memnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Backlog is how many connections of a listener wait to be accepted before further ones are refused.
const Backlog = 128

// ErrRefused means that there is no listener, or that its backlog is full.
var ErrRefused = errors.New("connection refused")

// Listener is a net.Listener in memory.
type Listener struct {
	addr netip.AddrPort

	mu      sync.Mutex
	closed  bool
	waiting chan *Conn
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a listener with the given address.
func Listen(addr netip.AddrPort) *Listener {
	return &Listener{addr: addr, waiting: make(chan *Conn, Backlog)}
}

// Dial connects to the listener from an address; the connection waits in the backlog until it is accepted.
func (l *Listener) Dial(from netip.AddrPort) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("connecting to %s: %w", l.addr, ErrRefused)
	}
	near, far := Pipe(from, l.addr)
	select {
	case l.waiting <- far:
		return near, nil
	default:
		return nil, fmt.Errorf("connecting to %s: %w: %d connections wait to be accepted already", l.addr, ErrRefused, Backlog)
	}
}

// Accept returns the next connection. It returns net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	conn, open := <-l.waiting
	if !open {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	return conn, nil
}

// Closed reports whether the listener has been closed.
func (l *Listener) Closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Close refuses further connections and closes those that wait.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.waiting)
	for conn := range l.waiting {
		_ = conn.Close()
	}
	return nil
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }
