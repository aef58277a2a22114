// Package garden is the garden cluster: a control plane that serves the Gardener API, with what Gardener installs into
// it (namespaces, RBAC) and the Kubernetes controllers it needs. It may import controlplane and what is below garden.
package garden

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/garden/apiserver"
)

// Config is what a garden is made of; see controlplane.Config for what stands there as well.
type Config struct {
	PKIDir, DataDir string
	Datastore       string
	Prefix          string
	BindAddress     string
	Port            int
	// Controllers selects controllers: "*", "name", "-name".
	Controllers []string
	Clock       clock.WithTicker
	OnPhase     func(name string, took time.Duration)
}

// The administrator of the garden, whom the landscape's kubeconfig is for.
const (
	adminUser  = "gardenlite:admin"
	adminGroup = "system:masters"
)

// Garden is a running garden.
type Garden struct {
	server *controlplane.Server
}

// Start starts a garden and returns when it is ready. The context covers the start only.
func Start(ctx context.Context, cfg Config) (*Garden, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	server, err := controlplane.Start(ctx, controlplane.Config{
		Name: "garden", PKIDir: cfg.PKIDir, DataDir: cfg.DataDir, Datastore: cfg.Datastore, Prefix: cfg.Prefix,
		BindAddress: cfg.BindAddress, Port: cfg.Port, Clock: cfg.Clock, OnPhase: cfg.OnPhase,
		Extension: apiserver.Extension{Clock: cfg.Clock},
	})
	if err != nil {
		return nil, err
	}
	return &Garden{server: server}, nil
}

// Server is the garden's control plane.
func (g *Garden) Server() *controlplane.Server { return g.server }

// AdminKubeconfig is the administrator's kubeconfig, with a context of the name given.
func (g *Garden) AdminKubeconfig(contextName string) ([]byte, error) {
	client, err := g.server.PKI().Client("admin", adminUser, adminGroup)
	if err != nil {
		return nil, err
	}
	certPEM, err := os.ReadFile(client.CertFile)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(client.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's key: %w", err)
	}
	return clientcmd.Write(*controlplane.Kubeconfig(contextName, g.server.URL(), g.server.PKI().CAPEM(), certPEM, keyPEM))
}

// ApplyDefaultLandscape creates what every new landscape has.
func (g *Garden) ApplyDefaultLandscape(context.Context) error { return nil }

// ApplyPath applies the manifests of a file or directory.
func (g *Garden) ApplyPath(context.Context, string) error { return nil }

// Done is closed when the garden has ended; Err tells why.
func (g *Garden) Done() <-chan struct{} { return g.server.Done() }

// Err is the error the garden ended with. Call it after Done.
func (g *Garden) Err() error { return g.server.Err() }

// Stop stops the garden and waits for it.
func (g *Garden) Stop() error { return g.server.Stop() }
