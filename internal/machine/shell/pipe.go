package shell

import (
	"io"
	"sync"
)

const pipeSize = 64 << 10

// pipe is a pipe in memory.
type pipe struct {
	b       *budget
	mu      sync.Mutex
	changed chan struct{}
	buf     []byte
	ended   bool // no more writes
	broken  bool // no more reads
}

func newPipe(b *budget) *pipe { return &pipe{b: b, changed: make(chan struct{})} }

func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) wait(changed chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-p.b.ctx.Done():
		return p.b.err()
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.buf) > 0 {
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			p.wake()
			p.mu.Unlock()
			return n, nil
		}
		ended, changed := p.ended, p.changed
		p.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		if err := p.wait(changed); err != nil {
			return 0, err
		}
	}
}

func (p *pipe) Write(b []byte) (int, error) {
	done := 0
	for {
		p.mu.Lock()
		if p.broken {
			p.mu.Unlock()
			return done, io.ErrClosedPipe
		}
		n := min(len(b)-done, pipeSize-len(p.buf))
		p.buf = append(p.buf, b[done:done+n]...)
		done += n
		p.wake()
		changed := p.changed
		p.mu.Unlock()
		if done == len(b) {
			return done, p.b.err()
		}
		if err := p.wait(changed); err != nil {
			return done, err
		}
	}
}

func (p *pipe) closeWrite() {
	p.mu.Lock()
	p.ended = true
	p.wake()
	p.mu.Unlock()
}

func (p *pipe) closeRead() {
	p.mu.Lock()
	p.broken, p.buf = true, nil
	p.wake()
	p.mu.Unlock()
}

// input reads the caller's standard input so that a script that is cancelled does not hang in it. The goroutine that reads
// starts with the first read, reads only when it is asked to, and ends with the caller's reader.
type input struct {
	r    io.Reader
	once sync.Once
	ask  chan int
	got  chan []byte
	mu   sync.Mutex
	rest []byte
	wait bool
	b    func() *budget
	done chan struct{}
}

func newInput(r io.Reader, b func() *budget) *input {
	return &input{r: r, ask: make(chan int), got: make(chan []byte, 1), b: b, done: make(chan struct{})}
}

func (i *input) pump() {
	defer close(i.got)
	for {
		select {
		case <-i.done:
			return
		case <-i.ask:
		}
		buf := make([]byte, 4096)
		n, err := i.r.Read(buf)
		if n > 0 {
			i.got <- buf[:n]
		}
		if err != nil {
			return
		}
		if n == 0 {
			i.got <- nil
		}
	}
}

func (i *input) Read(p []byte) (int, error) {
	i.once.Do(func() { go i.pump() })
	i.mu.Lock()
	defer i.mu.Unlock()
	b := i.b()
	for len(i.rest) == 0 {
		// The last read may have been given up while the pump was reading: what it got is still to come.
		if !i.wait {
			select {
			case i.ask <- 1:
			case data, open := <-i.got:
				if !open {
					return 0, io.EOF
				}
				i.rest = data
				continue
			case <-b.ctx.Done():
				return 0, b.err()
			}
			i.wait = true
		}
		select {
		case data, open := <-i.got:
			if !open {
				return 0, io.EOF
			}
			i.rest, i.wait = data, false
		case <-b.ctx.Done():
			return 0, b.err()
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}
