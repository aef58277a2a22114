package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
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

// MaxBuffer is how many unread bytes of a direction are buffered before a writer blocks.
const MaxBuffer = 64 << 10

// half is one direction of a connection: a buffer between one side's Write and the other side's Read.
type half struct {
	mu      sync.Mutex
	changed sync.Cond
	buffer  bytes.Buffer

	ended      bool // by the writer: readers get the rest of the buffer, then io.EOF
	abandoned  bool // by the reader: writes fail from now on
	readLimit  deadline
	writeLimit deadline
}

func newHalf() *half {
	h := &half{}
	h.changed.L = &h.mu
	return h
}

// deadline wakes blocked readers and writers when its time has come.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set replaces the deadline; the half is locked.
func (d *deadline) set(h *half, at time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if wait := time.Until(at); !at.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, h.wake)
	}
	h.changed.Broadcast()
}

func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed.Broadcast()
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.abandoned:
			return 0, net.ErrClosed
		case h.readLimit.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.buffer.Len() > 0:
			h.changed.Broadcast()
			return h.buffer.Read(p)
		case h.ended:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte) (written int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.ended:
			return written, net.ErrClosed
		case h.abandoned:
			return written, io.ErrClosedPipe
		case h.writeLimit.passed():
			return written, os.ErrDeadlineExceeded
		case len(p) == 0:
			return written, nil
		}
		if n := min(len(p), MaxBuffer-h.buffer.Len()); n > 0 {
			_, _ = h.buffer.Write(p[:n]) // never fails
			p, written = p[n:], written+n
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

// end says that no more will be written.
func (h *half) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.writeLimit.set(h, time.Time{})
}

// abandon says that nothing more will be read.
func (h *half) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned = true
	h.buffer = bytes.Buffer{}
	h.readLimit.set(h, time.Time{})
}

func (h *half) setDeadline(d *deadline, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.set(h, at)
}
