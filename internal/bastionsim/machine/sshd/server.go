package sshd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
)

// ErrProhibited is wrapped by the error of a Forward function for a destination that its rules forbid.
var ErrProhibited = errors.New("administratively prohibited")

// Version is the version string of the server.
const Version = "SSH-2.0-gardenlite"

// The algorithms, the preferred ones first. SHA-1, CBC, MD5, DSA, Diffie-Hellman over integers and encrypt-and-MAC are
// missing on purpose. The library adds strict key exchange by itself.
var (
	keyExchanges = []string{
		ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519,
		ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521,
	}
	ciphers = []string{
		ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM,
		ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR,
	}
	macs           = []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM}
	publicKeyAuths = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
	}
)

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

// login is a user with what the key allows.
type login struct {
	user                User
	noPTY, noForwarding bool
}

// errNotAuthorized is the error for every refused login, whatever the reason is.
var errNotAuthorized = errors.New("not authorized")

// loginKey is the key of the login in the Permissions of a connection.
type loginKey struct{}

func (s *Server) authorize(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	allowed, err := authorize(s.cfg.Host, meta.User(), key)
	if err != nil {
		return nil, err
	}
	return &ssh.Permissions{ExtraData: map[any]any{loginKey{}: allowed}}, nil
}

// accepted records a login in the machine's journal.
func (s *Server) accepted(meta ssh.ConnMetadata, key ssh.PublicKey, permissions *ssh.Permissions, _ string) (*ssh.Permissions, error) {
	s.cfg.Host.Journal(fmt.Sprintf("Accepted publickey for %s from %s: %s %s",
		meta.User(), meta.RemoteAddr(), key.Type(), ssh.FingerprintSHA256(key)))
	return permissions, nil
}

// authorize returns what a key allows, according to the user's authorized_keys file.
func authorize(host Host, name string, key ssh.PublicKey) (login, error) {
	user, known := host.User(name)
	if !known || user.Locked || !path.IsAbs(user.Home) {
		return login{}, errNotAuthorized
	}
	if bastionspec.IsWeakKey(key) {
		host.Journal(fmt.Sprintf("Refused a key of less than %d bits for %s", bastionspec.MinRSABits, user.Name))
		return login{}, errNotAuthorized
	}
	file := path.Join(user.Home, ".ssh", "authorized_keys")
	if err := checkModes(host, user, file); errors.Is(err, fs.ErrNotExist) {
		return login{}, errNotAuthorized
	} else if err != nil {
		host.Journal("Authentication refused: " + err.Error())
		return login{}, errNotAuthorized
	}
	data, err := host.ReadFile(file, MaxAuthorizedKeys)
	if err != nil {
		host.Journal("Authentication refused: " + err.Error())
		return login{}, errNotAuthorized
	}
	return findKey(host, user, file, data, key.Marshal())
}

// checkModes checks a file, and the folders above it up to the home: only the user and root may own or write them.
func checkModes(host Host, user User, file string) error {
	for name := file; ; name = path.Dir(name) {
		info, err := host.Stat(name)
		switch {
		case err != nil:
			return err
		case name == file && !info.Mode.IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		case info.UID != 0 && info.UID != user.UID, info.Mode.Perm()&0o022 != 0:
			return fmt.Errorf("bad ownership or modes for %s", name)
		case name == path.Clean(user.Home) || name == "/":
			return nil
		}
	}
}

func findKey(host Host, user User, file string, data, wanted []byte) (login, error) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || !bytes.Equal(key.Marshal(), wanted) {
			continue
		}
		allowed, err := applyOptions(login{user: user}, options)
		if err != nil {
			host.Journal(fmt.Sprintf("Ignored line %d of %s: %v", number, file, err))
			continue
		}
		return allowed, nil
	}
	return login{}, errNotAuthorized
}

// applyOptions applies the options of a line to a login, in their order.
func applyOptions(l login, options []string) (login, error) {
	for _, option := range options {
		switch name, _, hasValue := strings.Cut(strings.ToLower(option), "="); {
		case hasValue:
			return login{}, fmt.Errorf("option %s is not supported", strings.TrimFunc(name, notPrintable))
		case name == "restrict":
			l.noPTY, l.noForwarding = true, true
		case name == "no-pty", name == "pty":
			l.noPTY = name == "no-pty"
		case name == "no-port-forwarding", name == "port-forwarding":
			l.noForwarding = name == "no-port-forwarding"
		case name == "no-agent-forwarding", name == "no-x11-forwarding", name == "no-user-rc":
			// This server does not have what these options forbid.
		default:
			return login{}, fmt.Errorf("option %q is not supported", name)
		}
	}
	return l, nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }
