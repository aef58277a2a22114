package sshd

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"

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

// newServerConn calls ssh.NewServerConn with a limit on the bytes that are read, and turns its panics into errors: a
// client that sends an unexpected message must not end the process. One panic is known, in v0.54 to v0.58: a client
// agrees on no algorithm in its second key exchange, before it is authenticated.
func newServerConn(raw net.Conn, config *ssh.ServerConfig) (conn *ssh.ServerConn, channels <-chan ssh.NewChannel,
	requests <-chan *ssh.Request, err error) {
	defer func() {
		if p := recover(); p != nil {
			_ = raw.Close()
			err = fmt.Errorf("the SSH library panicked: %v", p)
		}
	}()
	limited := &loginConn{Conn: raw}
	limited.left.Store(MaxLoginSize)
	conn, channels, requests, err = ssh.NewServerConn(limited, config)
	if err == nil {
		limited.left.Store(math.MaxInt64)
	}
	return conn, channels, requests, err
}
