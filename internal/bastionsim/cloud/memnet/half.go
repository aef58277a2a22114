package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// firstBuffer is the size of a direction's buffer when the first byte is written. The buffer grows as needed, up to
	// MaxBuffer.
	firstBuffer = 4 << 10
	// MaxBuffer is how many unread bytes of a direction are buffered before a writer blocks.
	MaxBuffer = 64 << 10
)

// half is one direction of a connection: a ring of bytes between one side's Write and the other side's Read.
type half struct {
	mu      sync.Mutex
	changed sync.Cond
	ring    []byte // allocated with the first byte, so that an idle connection costs little
	start   int
	length  int

	ended      bool // by the writer: readers get the rest of the ring, then io.EOF
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
		case h.length > 0:
			n := h.take(p)
			h.changed.Broadcast()
			return n, nil
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
		if n := h.put(p); n > 0 {
			p, written = p[n:], written+n
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

// take moves bytes out of the ring.
func (h *half) take(p []byte) int {
	n := copy(p, h.ring[h.start:min(h.start+h.length, len(h.ring))])
	h.start, h.length = (h.start+n)%len(h.ring), h.length-n
	if n < len(p) && h.length > 0 {
		more := copy(p[n:], h.ring[h.start:h.start+h.length])
		h.start, h.length, n = h.start+more, h.length-more, n+more
	}
	return n
}

// put moves bytes into the ring, as many as there is room for.
func (h *half) put(p []byte) int {
	h.grow(h.length + len(p))
	n := 0
	for n < len(p) && h.length < len(h.ring) {
		end := (h.start + h.length) % len(h.ring)
		room := h.ring[end:min(end+len(h.ring)-h.length, len(h.ring))]
		moved := copy(room, p[n:])
		h.length, n = h.length+moved, n+moved
	}
	return n
}

// grow makes the ring large enough for the wanted length, within MaxBuffer.
func (h *half) grow(wanted int) {
	size := max(len(h.ring), firstBuffer)
	for size < wanted && size < MaxBuffer {
		size *= 2
	}
	if size == len(h.ring) {
		return
	}
	ring := make([]byte, size)
	if length := h.length; length > 0 {
		h.take(ring[:length])
		h.length = length
	}
	h.ring, h.start = ring, 0
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
	h.ring, h.start, h.length = nil, 0, 0
	h.readLimit.set(h, time.Time{})
}

func (h *half) setReadDeadline(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readLimit.set(h, at)
}

func (h *half) setWriteDeadline(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeLimit.set(h, at)
}
