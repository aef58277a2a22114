// Package garden is the garden cluster: a control plane that serves the Gardener API, with what Gardener installs into
// it (namespaces, RBAC) and the Kubernetes controllers it needs. It may import controlplane and what is below garden.
package garden

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/garden/apiserver"
	"github.com/gardenlite/gardenlite/internal/garden/bootstrap"
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

// Garden is a running garden.
type Garden struct {
	server      *controlplane.Server
	admin       *rest.Config
	stop        context.CancelFunc
	controllers chan error
}
