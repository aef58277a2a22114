// Package registry provides the storage of the Gardener API groups. Each group has a folder, with a Definition for
// each resource. Package resource creates the storage from the Definitions. It may import scheme, validation and
// admission/plugin.
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

// Config configures the storage.
type Config struct {
	Clock clock.PassiveClock
	// ConfigMaps reads ConfigMaps from the kube-apiserver.
	ConfigMaps shootkubeconfig.ConfigMaps
	// Kubeconfigs are the settings of the subresources adminkubeconfig and viewerkubeconfig of Shoots.
	Kubeconfigs shootkubeconfig.Options
	// Issuer signs the tokens of WorkloadIdentities.
	Issuer *security.Issuer
	// BastionTimeToLive is how long Bastions live after a heartbeat; operations.DefaultTimeToLive if 0.
	BastionTimeToLive time.Duration
}

// New returns the storage of all groups, and a reader with which admission plugins read from it.
func New(getter generic.RESTOptionsGetter, cfg Config) ([]Group, *Reader, error) {
	reader := newReader() // is not used before all storage is added
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
