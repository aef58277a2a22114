package sshd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// ErrProhibited is wrapped by the error of a Forward function for a destination that its rules forbid.
var ErrProhibited = errors.New("administratively prohibited")

// Config is the configuration of a Server.
type Config struct {
	Host    Host
	HostKey ssh.Signer
	// Forward opens connections for direct-tcpip channels, and limits its own time. If it is nil, such channels are
	// refused.
	Forward func(ctx context.Context, host string, port uint32) (net.Conn, error)
	// Admit decides about each connection before a byte is read or written. If it is nil, every connection is admitted.
	Admit func(remote net.Addr) bool
	// Subsystems are the names of the subsystems that Host runs.
	Subsystems []string
	Clock      clock.WithTicker
	Log        logr.Logger
}

// Server is the SSH server of a machine. It may serve several listeners; the limits are for all of them.
type Server struct {
	cfg Config
	ssh *ssh.ServerConfig

	startups              startups
	connections, sessions *semaphore.Weighted

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// New returns a server.
func New(cfg Config) *Server {
	s := &Server{
		cfg:         cfg,
		startups:    startups{limit: MaxStartups},
		connections: semaphore.NewWeighted(MaxConnections),
		sessions:    semaphore.NewWeighted(MaxSessions),
		open:        map[net.Conn]struct{}{},
	}
	s.ssh = &ssh.ServerConfig{
		Config:                    ssh.Config{KeyExchanges: keyExchanges, Ciphers: ciphers, MACs: macs},
		PublicKeyAuthAlgorithms:   publicKeyAuths,
		MaxAuthTries:              MaxAuthTries,
		ServerVersion:             Version,
		PublicKeyCallback:         s.authorize,
		VerifiedPublicKeyCallback: s.accepted,
	}
	s.ssh.AddHostKey(cfg.HostKey)
	return s
}

// acceptRetry is the delay after a temporary error of a listener, such as too many open files.
const acceptRetry = 100 * time.Millisecond

// Serve answers clients on a listener until ctx ends or the listener is closed. It closes the listener and all connections
// that came from it, and returns when they have ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer l.Close()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			// admit is called in the order in which connections come, so that the oldest one is the first of startups.
			if waited := s.admit(conn); waited != nil {
				group.Go(func() { s.handle(ctx, conn, waited) })
			}
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return nil
		case !temporary(err):
			return fmt.Errorf("accepting an SSH connection on %s: %w", l.Addr(), err)
		default:
			s.cfg.Log.Error(err, "accepting an SSH connection failed, trying again", "address", l.Addr().String())
			select {
			case <-ctx.Done():
			case <-s.cfg.Clock.After(acceptRetry):
			}
		}
	}
}

func temporary(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Temporary() //nolint:staticcheck // there is nothing else that says so
}

// admit closes a refused connection and returns nil. Otherwise, waited must be called when the connection is
// authenticated.
func (s *Server) admit(raw net.Conn) (waited func()) {
	s.track(raw, true)
	// Admit is called after track, so that a concurrent Disconnect finds the connection, or Admit uses the new rules.
	if s.cfg.Admit != nil && !s.cfg.Admit(raw.RemoteAddr()) {
		_ = raw.Close()
		s.track(raw, false)
		return nil
	}
	return s.startups.add(raw)
}

func (s *Server) handle(ctx context.Context, raw net.Conn, waited func()) {
	defer s.track(raw, false)
	defer raw.Close()
	conn, channels, requests, err := s.handshake(ctx, raw, waited)
	if err != nil {
		s.cfg.Log.V(1).Info("SSH connection ended before it was authenticated", "remote", raw.RemoteAddr().String())
		return
	}
	allowed, ok := conn.Permissions.ExtraData[loginKey{}].(login)
	if !ok || !s.connections.TryAcquire(1) {
		_ = conn.Close()
		discard(channels, requests)
		return
	}
	defer s.connections.Release(1)
	s.cfg.Log.V(1).Info("SSH connection", "user", allowed.user.Name, "remote", raw.RemoteAddr().String())
	c := &connection{server: s, conn: conn, login: allowed, channels: semaphore.NewWeighted(MaxChannels)}
	c.serve(ctx, channels, requests)
}

// discard reads what a closed connection has left, until both end: the library waits for that.
func discard(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	var group sync.WaitGroup
	group.Go(func() { ssh.DiscardRequests(requests) })
	for range channels {
	}
	group.Wait()
}

func (s *Server) track(conn net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[conn] = struct{}{}
	} else {
		delete(s.open, conn)
	}
}

// DisconnectIf closes the connections of all clients for which whose returns true.
func (s *Server) DisconnectIf(whose func(remote net.Addr) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		if whose(conn.RemoteAddr()) {
			_ = conn.Close()
		}
	}
}

// handshake authenticates a client within the grace time.
func (s *Server) handshake(ctx context.Context, raw net.Conn, waited func()) (*ssh.ServerConn, <-chan ssh.NewChannel,
	<-chan *ssh.Request, error) {
	defer waited()
	var watch sync.WaitGroup
	done := make(chan struct{})
	timer := s.cfg.Clock.NewTimer(LoginGraceTime)
	watch.Go(func() {
		defer timer.Stop()
		select {
		case <-done:
		case <-ctx.Done():
			_ = raw.Close()
		case <-timer.C():
			_ = raw.Close()
		}
	})
	conn, channels, requests, err := newServerConn(raw, s.ssh)
	close(done)
	watch.Wait()
	return conn, channels, requests, err
}
