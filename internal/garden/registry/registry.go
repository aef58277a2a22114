// Package registry is the storage of the Gardener API groups. Each group has a folder, each resource a Definition in it.
// The folder resource makes storage out of Definitions. It may import scheme, validation and admission/plugin.
package registry

import (
	"errors"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/registry/operations"
	"github.com/gardenlite/gardenlite/internal/garden/registry/security"
	"github.com/gardenlite/gardenlite/internal/garden/registry/seedmanagement"
)

// Group is the storage of an API group.
type Group struct {
	Name string
	// Versions has the storage by version and path.
	Versions map[string]map[string]rest.Storage
}

// Config is what the storage needs beside the datastore.
type Config struct {
	Clock clock.PassiveClock
	// ConfigMaps reads those of kube-apiserver.
	ConfigMaps shootkubeconfig.ConfigMaps
	// Kubeconfigs is about those for Shoots.
	Kubeconfigs shootkubeconfig.Options
	// Issuer signs the tokens of WorkloadIdentities.
	Issuer *security.Issuer
	// BastionTimeToLive is how long Bastions live after a heartbeat; operations.DefaultTimeToLive if 0.
	BastionTimeToLive time.Duration
}

// New makes the storage of all groups, and a reader for admission plugins over it.
func New(getter generic.RESTOptionsGetter, cfg Config) ([]Group, *Reader, error) {
	reader := newReader() // is read from once all storage is there
	coreStorage, errCore := core.Storage(getter, cfg.Clock, shootkubeconfig.Config{Options: cfg.Kubeconfigs, ConfigMaps: cfg.ConfigMaps})
	operationsStorage, errOperations := operations.Storage(getter, cfg.Clock, cfg.BastionTimeToLive)
	securityStorage, errSecurity := security.Storage(getter, reader, cfg.Issuer)
	seedStorage, errSeed := seedmanagement.Storage(getter)
	groups := []Group{
		{gardencore.GroupName, coreStorage},
		{gardenoperations.GroupName, operationsStorage},
		{gardensecurity.GroupName, securityStorage},
		{gardenseedmanagement.GroupName, seedStorage},
	}
	if err := errors.Join(errCore, errOperations, errSecurity, errSeed); err != nil {
		return nil, nil, err
	}
	reader.add(groups)
	return groups, reader, nil
}
