package apiclient

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// pingAfter and pingTimeout configure the health check of HTTP/2, which detects dead connections.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	idleTimeout = 90 * time.Second
)

// Credentials contain the address of an API server and the identity of a client: a certificate (PEM) or a token.
type Credentials struct {
	Server string
	CA     []byte
	// Certificate has both the certificate and its key.
	Certificate []byte
	Token       string
}

// Pool holds the connections of all nodes of a process. The zero value is ready for use.
type Pool struct {
	// Clock is the clock for the validity of certificates; the real clock if nil.
	Clock clock.PassiveClock

	mu     sync.Mutex
	shared map[[sha256.Size]byte]*connection
}

type connection struct {
	transport *http.Transport
	users     int
}

// Get returns a client with these credentials. The caller closes it.
func (p *Pool) Get(c Credentials) (*Client, error) {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return nil, fmt.Errorf("the address of the API server, %q, is no https URL", c.Server)
	}
	key := c.key()
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.shared[key]
	if conn == nil {
		transport, err := p.newTransport(c)
		if err != nil {
			return nil, err
		}
		conn = &connection{transport: transport}
		if p.shared == nil {
			p.shared = map[[sha256.Size]byte]*connection{}
		}
		p.shared[key] = conn
	}
	conn.users++
	return &Client{server: server, token: c.Token, transport: conn.transport, close: sync.OnceFunc(func() { p.release(key, conn) })}, nil
}

func (p *Pool) release(key [sha256.Size]byte, conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn.users--; conn.users == 0 {
		delete(p.shared, key)
		conn.transport.CloseIdleConnections()
	}
}

func (c Credentials) key() [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.Server), c.CA, c.Certificate, []byte(c.Token)} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (p *Pool) newTransport(c Credentials) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, errors.New("there is no certificate in the authority of the API server")
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if p.Clock != nil {
		config.Time = p.Clock.Now
	}
	if len(c.Certificate) > 0 {
		pair, err := tls.X509KeyPair(c.Certificate, c.Certificate)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: 1,
		TLSHandshakeTimeout: requestTimeout, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}, nil
}
