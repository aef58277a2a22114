package apiclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	certificatesv1 "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// requestTimeout is the timeout of all requests except watches.
	requestTimeout = 15 * time.Second
	// maxResponse is the maximum number of bytes of a response, except of a watch: more than the 10,000 Pods of the Node
	// of a seed have.
	maxResponse = 256 << 20
)

// Credentials contain the address of an API server and the identity of a client: a certificate (PEM) or a token.
type Credentials struct {
	Server string
	CA     []byte
	// Certificate has both the certificate and its key.
	Certificate []byte
	Token       string
}

// Client has the clients of the API groups that a node's programs use. A clientset of all groups would take 70 kB more
// per node.
type Client struct {
	Core         corev1.CoreV1Interface
	Coordination coordinationv1.CoordinationV1Interface
	Certificates certificatesv1.CertificatesV1Interface
	// Dynamic is for Stages and their CustomResourceDefinition.
	Dynamic dynamic.Interface

	http *http.Client
}

// New returns a client with these credentials. The caller closes it.
func New(c Credentials) (*Client, error) {
	if server, err := url.Parse(c.Server); err != nil || server.Scheme != "https" || server.Host == "" {
		return nil, fmt.Errorf("the address of the API server, %q, is no https URL", c.Server)
	}
	if len(c.CA) == 0 {
		return nil, errors.New("the API server has no authority: without it, client-go would trust those of the system")
	}
	config := &rest.Config{
		Host: c.Server, BearerToken: c.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, CertData: c.Certificate, KeyData: c.Certificate},
		// The API server derives the field manager from the user agent.
		UserAgent: "kubelet", DisableCompression: true, WarningHandler: rest.NoWarnings{},
		QPS:           -1, // a kubelet with many Pods has more requests than client-go's default permits
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return limits{next} },
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials for the API server: %w", err)
	}
	core, errCore := corev1.NewForConfigAndClient(config, httpClient)
	coordination, errCoordination := coordinationv1.NewForConfigAndClient(config, httpClient)
	certificates, errCertificates := certificatesv1.NewForConfigAndClient(config, httpClient)
	objects, errObjects := dynamic.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(errCore, errCoordination, errCertificates, errObjects); err != nil {
		return nil, fmt.Errorf("making the clients for the API server: %w", err)
	}
	return &Client{core, coordination, certificates, objects, httpClient}, nil
}

// Close closes the connection unless another client uses it at the moment. It can be called several times.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// ObjectOf returns the object of an event that was received from the channel of a watch. If the watch has ended
// instead, it returns the reason: io.EOF if the API server has ended it.
func ObjectOf[T runtime.Object](event watch.Event, open bool) (object T, err error) {
	if !open {
		return object, io.EOF
	}
	if event.Type == watch.Error {
		return object, fmt.Errorf("watching: %w", apierrors.FromObject(event.Object))
	}
	object, ok := event.Object.(T)
	if !ok {
		return object, fmt.Errorf("watching: the API server has sent a %T", event.Object)
	}
	return object, nil
}

// limits is a transport that limits the duration and the size of all responses except watches, for which the timeout of
// an http.Client would hold as well.
type limits struct{ next http.RoundTripper }

func (l limits) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		return l.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), requestTimeout)
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &limitedBody{http.MaxBytesReader(nil, response.Body, maxResponse), cancel}
	return response, nil
}

// WrappedRoundTripper makes the connection known to Close.
func (l limits) WrappedRoundTripper() http.RoundTripper { return l.next }

// limitedBody is the body of a response, whose deadline ends when it is closed.
type limitedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
