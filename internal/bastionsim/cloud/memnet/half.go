package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

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
