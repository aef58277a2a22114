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

// startups are the connections that are not authenticated yet. When there are too many, the one that has waited longest has
// to go: clients that only connect do not keep those out who come to log in.
type startups struct {
	limit int

	mu      sync.Mutex
	waiting list.List // of net.Conn, the oldest one first
}

// add takes a connection. The function returned is to be called when it waits no more.
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

func (s *startups) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.Len()
}

// loginConn is a connection of which only so much can be read until it is authenticated.
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

// authenticated lets the client send what it likes.
func (c *loginConn) authenticated() { c.left.Store(math.MaxInt64) }

// newServerConn is the library's, with a limit of what is read, and without its panics: a client that sends an
// unexpected message must not end the process. One is known, in v0.54 to v0.58: a client that agrees on no algorithm in
// its second exchange of keys, before it is authenticated.
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
		limited.authenticated()
	}
	return conn, channels, requests, err
}
