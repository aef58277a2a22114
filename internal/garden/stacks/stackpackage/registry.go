package stackpackage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gardenlite/gardenlite/internal/ociregistry"
)

const (
	// pullTimeout is the maximum duration of a pull from a registry, dialTimeout that of one connection to it.
	pullTimeout = 2 * time.Minute
	dialTimeout = 30 * time.Second
)

// errLoopback says that a registry on a loopback address is not allowed, and what allows it.
var errLoopback = errors.New("it is on a loopback address of this machine, which is allowed with " +
	"\"gardenlite up --allow-loopback-registry\" only")

// pull reads the package in an image of a registry. It also returns the digest of the manifest.
func pull(ctx context.Context, reference string, loopback bool) (Files, string, error) {
	repository, err := ociregistry.Open(reference)
	if err != nil {
		return nil, "", err
	}
	if host := repository.Reference.Host(); !loopback && ociregistry.IsLoopback(host) {
		return nil, "", fmt.Errorf("registry %s: %w", host, errLoopback)
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	transport := newBoundedTransport(repository.Reference.Host())
	defer transport.next.CloseIdleConnections()
	repository.Client = &auth.Client{Client: &http.Client{Transport: transport}, Cache: auth.NewCache()}
	image, err := repository.Resolve(ctx, repository.Reference.Reference)
	if err != nil {
		return nil, "", err
	}
	return readImage(ctx, repository, image)
}

// boundedTransport limits the bytes that a registry sends, and accesses loopback addresses, without TLS as well,
// only if the registry has one: a name or a redirect does not lead there.
type boundedTransport struct {
	next *http.Transport
	// plain is set if the registry has a loopback address.
	plain bool
	left  atomic.Int64
}

func newBoundedTransport(registry string) *boundedTransport {
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.MaxResponseHeaderBytes = 64 << 10
	t := &boundedTransport{next: next, plain: ociregistry.IsLoopback(registry)}
	t.left.Store(maxPackedBytes)
	if !t.plain {
		next.DialContext = remote
	}
	return t
}

// remote connects to an address that is not a loopback address, whatever name it has. A proxy of the user's
// environment may have one: it resolves names itself.
func remote(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !isProxy(address) {
		dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if ip := at.Addr().Unmap(); err != nil || ip.IsLoopback() || ip.IsUnspecified() {
				return fmt.Errorf("registry %s: %w", address, errLoopback)
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// isProxy reports whether an address is that of the proxy in the user's environment.
func isProxy(address string) bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: "registry.example.org"}})
	if err != nil || proxy == nil {
		return false
	}
	host, port, err := net.SplitHostPort(address)
	return err == nil && host == proxy.Hostname() && (port == proxy.Port() || proxy.Port() == "")
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	local := ociregistry.IsLoopback(request.URL.Host)
	switch {
	case request.URL.Scheme != "https" && !(local && t.plain):
		return nil, fmt.Errorf("%s is asked with TLS only", request.URL.Host)
	case local && !t.plain:
		return nil, fmt.Errorf("the registry refers to %s, which is on this machine", request.URL.Host)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{response.Body, &t.left}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left *atomic.Int64
}

func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left.Add(-int64(n)) < 0 {
		return 0, errors.New("the registry sends more than is allowed")
	}
	return n, err
}
