package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// file is an open file of a shell. Several descriptors may refer to it; it is closed with the last one.
type file struct {
	refs   atomic.Int32
	reader func(ctx context.Context, p []byte) (int, error) // nil: not for reading
	writer func(ctx context.Context, p []byte) (int, error) // nil: not for writing
	closer func()
	tty    bool
}

func newFile(reader, writer func(context.Context, []byte) (int, error), closer func()) *file {
	f := &file{reader: reader, writer: writer, closer: closer}
	f.refs.Store(1)
	return f
}

func (f *file) dup() *file {
	f.refs.Add(1)
	return f
}

func (f *file) close() {
	if f.refs.Add(-1) == 0 && f.closer != nil {
		f.closer()
	}
}

// textFile returns a file for reading a text, as here-documents are.
func textFile(text string) *file {
	var mu sync.Mutex
	in := strings.NewReader(text)
	return newFile(func(_ context.Context, p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return in.Read(p)
	}, nil, nil)
}

// counted returns a file for the output of the session, whose bytes are counted.
func (r *run) counted(w io.Writer) *file {
	if w == nil {
		w = io.Discard
	}
	var mu sync.Mutex
	return newFile(nil, func(_ context.Context, p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		left := r.limits.Output - r.output.Add(int64(len(p))) + int64(len(p))
		if left >= int64(len(p)) {
			return w.Write(p)
		}
		n, _ := w.Write(p[:max(0, left)]) // the error of the limit is returned
		return n, r.kill("output")
	}, nil)
}

const pipeSize = 64 << 10

// pipe connects two commands. Reading and writing end with the context of the caller.
type pipe struct {
	mu      sync.Mutex
	data    []byte
	changed chan struct{} // closed when something changed
	noRead  bool
	noWrite bool
}

func newPipe() (reader, writer *file) {
	p := &pipe{changed: make(chan struct{})}
	reader = newFile(p.read, nil, func() { p.end(&p.noRead) })
	writer = newFile(nil, p.write, func() { p.end(&p.noWrite) })
	return reader, writer
}

func (p *pipe) end(flag *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*flag = true
	p.notify()
}

func (p *pipe) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) read(ctx context.Context, b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.data) > 0 {
			n := copy(b, p.data)
			p.data = p.data[n:]
			p.notify()
			p.mu.Unlock()
			return n, nil
		}
		done, changed := p.noWrite, p.changed
		p.mu.Unlock()
		if done {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (p *pipe) write(ctx context.Context, b []byte) (int, error) {
	written := 0
	for {
		p.mu.Lock()
		if p.noRead {
			p.mu.Unlock()
			return written, syscall.EPIPE
		}
		n := min(pipeSize-len(p.data), len(b))
		if n > 0 {
			p.data = append(p.data, b[:n]...)
			b, written = b[n:], written+n
			p.notify()
		}
		changed := p.changed
		p.mu.Unlock()
		if len(b) == 0 {
			return written, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return written, ctx.Err()
		}
	}
}

// feedSize is how many bytes of the caller's stdin are read at once: the data of one SSH packet.
const feedSize = 32 << 10

// feed returns a file for the caller's stdin. The caller's reader cannot be interrupted, so a goroutine copies it into
// a pipe, from the first read on. The goroutine ends when the caller's reader ends, or when the reader returns after
// the run has ended.
func feed(in io.Reader) *file {
	reader, writer := newPipe()
	ctx, cancel := context.WithCancel(context.Background())
	var once sync.Once
	return newFile(func(readCtx context.Context, p []byte) (int, error) {
		once.Do(func() {
			go func() {
				defer writer.close()
				buf := make([]byte, feedSize)
				for {
					n, err := in.Read(buf)
					if _, writeErr := writer.writer(ctx, buf[:n]); err != nil || writeErr != nil {
						return
					}
				}
			}()
		})
		return reader.reader(readCtx, p)
	}, nil, func() {
		reader.close()
		cancel()
	})
}

// stream is a descriptor as commands use it. It enforces the limits, and remembers whether the reader of a pipe has
// gone.
type stream struct {
	sh     *shell
	file   *file
	broken bool
}

var errClosed = errors.New("bad file descriptor")

func (s *stream) Read(p []byte) (int, error) {
	if err := s.sh.step(1 + len(p)>>12); err != nil {
		return 0, err
	}
	if s.file == nil || s.file.reader == nil {
		return 0, errClosed
	}
	return s.file.reader(s.sh.ctx, p)
}

func (s *stream) Write(p []byte) (int, error) {
	if err := s.sh.step(1 + len(p)>>12); err != nil {
		return 0, err
	}
	if s.file == nil || s.file.writer == nil {
		return 0, errClosed
	}
	n, err := s.file.writer(s.sh.ctx, p)
	s.broken = s.broken || errors.Is(err, syscall.EPIPE)
	return n, err
}
