package sshd

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// startups are the connections that are not authenticated yet. If there are too many, the oldest one is closed, so that
// clients that only connect do not keep other clients out.
type startups struct {
	limit int

	mu      sync.Mutex
	waiting list.List // of net.Conn, the oldest one first
}

// add adds a connection. done must be called when the connection is authenticated or has ended.
func (s *startups) add(conn net.Conn) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting.Len() >= s.limit {
		oldest := s.waiting.Front()
		_ = s.waiting.Remove(oldest).(net.Conn).Close()
	}
	here := s.waiting.PushBack(conn)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting.Remove(here) // does nothing if it has been removed to make room
	}
}

// loginConn limits how many bytes are read from a connection before it is authenticated.
type loginConn struct {
	net.Conn
	left atomic.Int64
}

var errLoginSize = errors.New("the client has sent too much without being authenticated")

func (c *loginConn) Read(p []byte) (int, error) {
	if c.left.Load() <= 0 {
		return 0, errLoginSize
	}
	n, err := c.Conn.Read(p)
	c.left.Add(-int64(n))
	return n, err
}

// readers counts the connections that the SSH library still reads. In golang.org/x/crypto/ssh up to v0.59, 16 messages of
// a client can be pending. If the library refuses one of them, it does not read the others, and the goroutine that has
// the 17th blocks for ever, although the connection is closed. Only the garbage collector finds out which connections
// are no longer read.
type readers struct {
	count atomic.Int64

	mu   sync.Mutex
	next time.Time // of the next collection
}

// collectionTimeout limits how long a new connection waits for those that are no longer read.
const collectionTimeout = 200 * time.Millisecond

// limited returns a connection with a limit on the bytes that are read, and counts it.
func (r *readers) limited(raw net.Conn) *loginConn {
	r.count.Add(1)
	c := &loginConn{Conn: raw}
	c.left.Store(MaxLoginSize)
	runtime.AddCleanup(c, func(count *atomic.Int64) { count.Add(-1) }, &r.count)
	return c
}

// tooMany reports whether no further connection may be read.
func (r *readers) tooMany() bool {
	if r.count.Load() < MaxReaders {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().After(r.next) {
		runtime.GC()
		now := time.Now()
		r.next = now.Add(time.Second)
		// The cleanups run soon after the collection.
		for deadline := now.Add(collectionTimeout); r.count.Load() >= MaxReaders && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	return r.count.Load() >= MaxReaders
}

// newServerConn calls ssh.NewServerConn with a limit on the bytes that are read, and turns its panics into errors: a
// client that sends an unexpected message must not end the process. One panic is known, in v0.54 to v0.58: a client
// agrees on no algorithm in its second key exchange, before it is authenticated.
func newServerConn(limited *loginConn, config *ssh.ServerConfig) (conn *ssh.ServerConn, channels <-chan ssh.NewChannel,
	requests <-chan *ssh.Request, err error) {
	defer func() {
		if p := recover(); p != nil {
			_ = limited.Close()
			err = fmt.Errorf("the SSH library panicked: %v", p)
		}
	}()
	conn, channels, requests, err = ssh.NewServerConn(limited, config)
	if err == nil {
		limited.left.Store(math.MaxInt64)
	}
	return conn, channels, requests, err
}
