package stackpackage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pullTimeout is the maximum duration of a pull from a registry.
const pullTimeout = 2 * time.Minute

// maxErrorBytes is how much is read of an answer of a registry that is an error.
const maxErrorBytes = 4 << 10

// pull reads the package in an image of a registry. It also returns the digest of the manifest.
func pull(ctx context.Context, reference string) (Files, string, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	transport := newBoundedTransport(ref.Context().RegistryStr())
	defer transport.next.CloseIdleConnections()
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuth(authn.Anonymous),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return nil, "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, "", err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, "", err
	}
	for _, descriptor := range manifest.Layers {
		if len(descriptor.URLs) > 0 {
			return nil, "", errors.New("a layer of the image is not in its registry, which is not allowed")
		}
	}
	remoteLayers, err := image.Layers()
	if err != nil {
		return nil, "", err
	}
	transport.left.Store(maxPackedBytes)
	var layers []layer
	for _, l := range remoteLayers {
		layers = append(layers, l.Compressed) // verifies the digest
	}
	files, err := readLayers(layers)
	return files, digest.String(), err
}

// boundedTransport limits the bytes that a registry sends, and accesses registries without TLS only on this machine.
type boundedTransport struct {
	next *http.Transport
	// plain is set if the registry is on this machine.
	plain bool
	left  atomic.Int64
}

func newBoundedTransport(registry string) *boundedTransport {
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.MaxResponseHeaderBytes = 64 << 10
	t := &boundedTransport{next: next, plain: isLoopback(registry)}
	t.left.Store(maxManifestBytes)
	return t
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	local := isLoopback(request.URL.Host)
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
	if response.StatusCode >= http.StatusMultipleChoices { // it becomes a part of the error
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBytes), response.Body}
	}
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

// isLoopback reports whether an address is a loopback address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
