package seedhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

const (
	proxyTimeout = 10 * time.Second
	// proxyConnections limits how many connections are open at a time.
	proxyConnections = 1000
)

// Proxy is an HTTP proxy on the loopback address through which Gardener's gardenlet, which runs outside of its seed here, and the users
// of its shoots reach their API servers by name: kube-apiserver.NAMESPACE.svc:443, and what the gardenlet advertises. It connects to
// nothing else, and these API servers listen on the loopback address themselves.
type Proxy struct {
	host     *Host
	listener net.Listener
	server   *http.Server
	slots    chan struct{}
	serving  sync.WaitGroup
	// ending ends the connections, which the server does not know any more.
	ending context.Context
	end    context.CancelFunc
}

// StartProxy starts the proxy at a port, a free one if that is 0 or in use.
func (h *Host) StartProxy(port int) (*Proxy, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listening for the gardenlets that run outside of their seeds: %w", err)
	}
	p := &Proxy{host: h, listener: listener, slots: make(chan struct{}, proxyConnections)}
	p.ending, p.end = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: proxyTimeout}
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // it ends with Close
	return p, nil
}

// Port returns the port of the proxy.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.end()
	err := p.server.Close()
	p.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	address := p.addressOf(r)
	if address == "" {
		http.Error(w, "only CONNECT to port 443 of a name of the API server of a shoot that runs, such as kube-apiserver.NAMESPACE.svc", http.StatusForbidden)
		return
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	far, err := (&net.Dialer{Timeout: proxyTimeout}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "the API server of the shoot does not answer", http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	defer context.AfterFunc(p.ending, func() { _, _ = near.Close(), far.Close() })()
	if _, err := near.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, buffered) // an error ends the connection, as its end does
		_, _ = near.Close(), far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// addressOf returns the address that a request may be connected to, empty if there is none.
func (p *Proxy) addressOf(r *http.Request) string {
	name, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || port != strconv.Itoa(spec.ServicePort) {
		return ""
	}
	if p.host.shoots == nil {
		return ""
	}
	status, found := p.host.shoots.StatusOf(strings.TrimSuffix(name, ".cluster.local"))
	if !found || status.Phase != shootplane.Ready {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(status.Port))
}
