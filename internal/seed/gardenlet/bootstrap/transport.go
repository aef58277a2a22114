package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// transport sends every request with the certificate that is current when the request starts.
//
// Each certificate has its own connections, a generation. A former generation ends with its last request, however long
// that takes, so that a rotation interrupts nothing.
type transport struct {
	mu          sync.Mutex
	generations map[*generation]struct{} // with connections
	current     *generation
	closed      bool
}

var errClosed = errors.New("the gardenlet's identity is not in use any more")

func newTransport() *transport { return &transport{generations: map[*generation]struct{}{}} }

// rotate makes the credentials of a configuration the current ones.
func (t *transport) rotate(config *rest.Config) error {
	next, err := newGeneration(config)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return errClosed
	}
	last := t.current
	t.current, t.generations[next] = next, struct{}{}
	over := last != nil && t.isOver(last)
	t.mu.Unlock()
	if over {
		last.end()
	} else if last != nil {
		last.http.CloseIdleConnections()
	}
	return nil
}

// isOver reports whether a generation is not needed any more, and removes it then. The caller holds the lock.
func (t *transport) isOver(g *generation) bool {
	if g == t.current || g.requests > 0 {
		return false
	}
	delete(t.generations, g)
	return true
}

func (t *transport) close() {
	t.mu.Lock()
	all := slices.Collect(maps.Keys(t.generations))
	t.closed, t.current = true, nil
	clear(t.generations)
	t.mu.Unlock()
	for _, g := range all {
		g.end()
	}
}

// RoundTrip sends a request. The request is in progress until the body of its response is read or closed.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.mu.Lock()
	g := t.current
	if g == nil {
		t.mu.Unlock()
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errClosed)
	}
	g.requests++
	t.mu.Unlock()
	done := sync.OnceFunc(func() { t.done(g) })
	response, err := g.http.RoundTrip(request)
	if err != nil || response.Body == nil {
		done()
		return response, err
	}
	body := counted{response.Body, done}
	if both, ok := response.Body.(io.ReadWriteCloser); ok { // 101 Switching Protocols
		response.Body = countedBoth{body, both}
	} else {
		response.Body = body
	}
	return response, nil
}

func (t *transport) done(g *generation) {
	t.mu.Lock()
	g.requests--
	over := t.isOver(g)
	t.mu.Unlock()
	if over {
		g.end()
	}
}

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	g := t.current
	t.mu.Unlock()
	if g != nil {
		g.http.CloseIdleConnections()
	}
}

// TLSClientConfig returns the current TLS configuration for clients that open their own connections, such as for exec.
func (t *transport) TLSClientConfig() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil
	}
	return t.current.http.TLSClientConfig
}

// counted is the body of a response. It calls done when the body is read or closed.
type counted struct {
	io.ReadCloser
	done func()
}

func (b counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b counted) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

type countedBoth struct {
	counted
	io.Writer
}

// generation holds the connections that use one certificate.
type generation struct {
	http     *http.Transport
	requests int // in progress; guarded by transport.mu

	mu    sync.Mutex
	conns map[*conn]struct{}
	ended bool
}

func newGeneration(config *rest.Config) (*generation, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	g := &generation{conns: map[*conn]struct{}{}}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	g.http = utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, Proxy: config.Proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return g.track(c)
		},
	})
	return g, nil
}

// conn is a connection that its generation tracks.
type conn struct {
	net.Conn
	generation *generation
}

func (g *generation) track(c net.Conn) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil, errors.Join(errClosed, c.Close())
	}
	tracked := &conn{c, g}
	g.conns[tracked] = struct{}{}
	return tracked, nil
}

func (c *conn) Close() error {
	c.generation.mu.Lock()
	delete(c.generation.conns, c)
	c.generation.mu.Unlock()
	return c.Conn.Close()
}

// end closes all connections, including those that are not idle yet: HTTP/2 returns a connection some time after a
// response is read.
func (g *generation) end() {
	g.http.CloseIdleConnections()
	g.mu.Lock()
	g.ended = true
	all := slices.Collect(maps.Keys(g.conns))
	g.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// clientOf returns a client with its own connections, and a function that closes them.
func clientOf(config *rest.Config) (kubernetes.Interface, func(), error) {
	g, err := newGeneration(config)
	if err != nil {
		return nil, nil, err
	}
	roundTripper, err := rest.HTTPWrappersForConfig(config, g.http)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // polling limits itself
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: roundTripper})
	return client, g.end, err
}
