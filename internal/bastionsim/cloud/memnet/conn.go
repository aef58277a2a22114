package memnet

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// Conn is one side of a connection. Its methods may be called at the same time.
type Conn struct {
	in, out       *half
	local, remote net.Addr
}

var _ net.Conn = (*Conn)(nil)

// Pipe returns the two sides of a connection between two addresses.
func Pipe(a, b netip.AddrPort) (*Conn, *Conn) {
	there, back := newHalf(), newHalf()
	addrA, addrB := net.TCPAddrFromAddrPort(a), net.TCPAddrFromAddrPort(b)
	return &Conn{in: back, out: there, local: addrA, remote: addrB}, &Conn{in: there, out: back, local: addrB, remote: addrA}
}

// Read reads what the other side wrote; io.EOF after it has closed.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.failed("read", err)
}

// Write returns when everything is in the buffer.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.failed("write", err)
}

// failed returns the error that a socket would return.
func (c *Conn) failed(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite says that no more will be written; the other side reads what is there and then io.EOF.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// Close ends both directions. The other side can still read what has been written.
func (c *Conn) Close() error {
	c.out.end()
	c.in.abandon()
	return nil
}

// LocalAddr returns the address of this side.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; the zero time means none.
func (c *Conn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

// SetReadDeadline sets when a Read gives up with os.ErrDeadlineExceeded.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.in.setDeadline(&c.in.readLimit, at)
	return nil
}

// SetWriteDeadline sets when a Write gives up with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.out.setDeadline(&c.out.writeLimit, at)
	return nil
}
