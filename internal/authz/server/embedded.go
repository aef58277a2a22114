package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
)

// loopback is the address on which the webhooks of a landscape listen, because only its API server calls them.
const loopback = "127.0.0.1"

// Embedded is the admission controller of a garden in the same process.
type Embedded struct {
	listener net.Listener
	taken    bool // by a controller, which closes the listener
}

// Listen opens the port of the webhooks; 0 chooses a free one.
func Listen(port int) (*Embedded, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening for the admission webhooks: %w", err)
	}
	return &Embedded{listener: listener}, nil
}

// Close closes the port, if the controller has not closed it.
func (e *Embedded) Close() error { return e.listener.Close() }

// take returns the listener for a new controller. After the first one it listens at the same address again.
func (e *Embedded) take() (net.Listener, error) {
	if e.taken {
		listener, err := net.Listen("tcp", e.listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("listening for the admission webhooks again: %w", err)
		}
		e.listener = listener
	}
	e.taken = true
	return e.listener, nil
}

// Port returns the port of the webhooks.
func (e *Embedded) Port() int { return e.listener.Addr().(*net.TCPAddr).Port }

// Services returns the address of the webhooks' Service for the garden's API server: each process has its own webhooks,
// and the same ValidatingWebhookConfiguration is for all of them.
func (e *Embedded) Services() map[string]*url.URL {
	return map[string]*url.URL{
		constants.GardenNamespace + "/" + ServiceName: {Scheme: "https", Host: e.listener.Addr().String()},
	}
}

// WriteFiles writes the files for the garden's API server, and returns the flags with them.
func (e *Embedded) WriteFiles(p *pki.PKI, folder string) ([]string, error) {
	client, err := p.Client(ClientName, ClientUser)
	if err != nil {
		return nil, err
	}
	return Client{URL: "https://" + e.listener.Addr().String(), CAPEM: p.CAPEM(), CertFile: client.CertFile,
		KeyFile: client.KeyFile}.WriteFiles(folder)
}

// New returns the controller, with the listener, the certificates of p, and the page with the graph, and installs the
// admission webhooks with the permissions of admin. It can be called again when that controller has ended.
func (e *Embedded) New(ctx context.Context, cfg Config, admin *rest.Config, p *pki.PKI) (c *Controller, err error) {
	listener, err := e.take()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // so that the next controller can listen
			_ = listener.Close()
		}
	}()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(p.CAPEM())
	cfg.Listener, cfg.Debug = listener, true
	cfg.CAPEM, cfg.CertFile, cfg.KeyFile = p.CAPEM(), p.ServingCertFile(), p.ServingKeyFile()
	cfg.ClientCAs, cfg.ClientNames = authorities, []string{ClientUser}
	c, err = New(cfg)
	if err != nil {
		return nil, err
	}
	// Before the authorizer allows anything: the restriction checks what is then written.
	return c, errors.Join(Install(ctx, admin, "", p.CAPEM(), cfg.Limits), allowCounting(ctx, admin, cfg.Limits))
}

// InspectPrefix is the prefix of the paths of InspectHandler.
const InspectPrefix = inspect.Prefix

// InspectHandler returns a handler that explains the decisions of a controller. The function returns the controller and
// the client configuration of the garden's administrator, or an error if there is none.
func InspectHandler(controller func() (*Controller, *rest.Config, error)) http.Handler {
	return inspect.Handler(func() (*inspect.Inspector, error) {
		c, admin, err := controller()
		if err != nil {
			return nil, err
		}
		return c.Inspector(admin)
	})
}
