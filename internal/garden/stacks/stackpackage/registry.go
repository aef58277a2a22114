package stackpackage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gardenlite/gardenlite/internal/ociregistry"
)

// pullTimeout is the maximum duration of a pull from a registry.
const pullTimeout = 2 * time.Minute

// pull reads the package in an image of a registry. It also returns the digest of the manifest.
func pull(ctx context.Context, reference string) (Files, string, error) {
	repository, err := ociregistry.Open(reference)
	if err != nil {
		return nil, "", err
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
	t := &boundedTransport{next: next, plain: ociregistry.IsLoopback(registry)}
	t.left.Store(maxPackedBytes)
	return t
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
