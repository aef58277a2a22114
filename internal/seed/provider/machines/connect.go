package machines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// idle is how long an unused connection to a shoot stays open: there can be hundreds of shoots.
const idle = 10 * time.Second

// shootScheme and shootMapper contain the kinds that are used in shoots, so that no client needs discovery.
var shootScheme, shootMapper = func() (*runtime.Scheme, meta.RESTMapper) {
	scheme := runtime.NewScheme()
	corev1.AddToScheme(scheme)
	policyv1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	return scheme, mapper
}()

// Connect returns a client for a self-contained kubeconfig, and a function that closes its connections. The client does not
// share connections with others.
func Connect(kubeconfig []byte) (client.WithWatch, func(), error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
		config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
		return nil, nil, errors.New("the kubeconfig names files or programs of the host; put certificates and tokens themselves into it")
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificates of the kubeconfig: %w", err)
	}
	conns := &connections{open: map[net.Conn]struct{}{}}
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, DialContext: conns.dial,
		TLSHandshakeTimeout: shootTimeout, IdleConnTimeout: idle,
	}
	roundTripper, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client from the kubeconfig: %w", err)
	}
	config.QPS = -1
	made, err := client.NewWithWatch(config, client.Options{
		HTTPClient: &http.Client{Transport: roundTripper}, Scheme: shootScheme, Mapper: shootMapper,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client from the kubeconfig: %w", err)
	}
	return made, func() { transport.CloseIdleConnections(); conns.close() }, nil
}

// connections tracks the connections of a client, so that all of them can be closed.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

type connection struct {
	net.Conn
	of *connections
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := (&net.Dialer{Timeout: shootTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(net.ErrClosed, raw.Close())
	}
	made := &connection{raw, c}
	c.open[made] = struct{}{}
	return made, nil
}

func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for conn := range open {
		conn.Close()
	}
}

// Close closes the connection and stops tracking it.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
