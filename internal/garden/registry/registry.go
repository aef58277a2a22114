// Package registry is the storage of the Gardener API groups. Each group has a folder, each resource a Definition in it.
// The folder resource makes storage out of Definitions. It may import scheme, validation and admission/plugin.
package registry

import (
	"errors"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core"
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

// New makes the storage of all groups, and a reader for admission plugins over it.
func New(getter generic.RESTOptionsGetter, clock clock.PassiveClock) ([]Group, *Reader, error) {
	coreStorage, errCore := core.Storage(getter, clock)
	operationsStorage, errOperations := operations.Storage(getter, clock)
	securityStorage, errSecurity := security.Storage(getter)
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
	return groups, newReader(groups), nil
}
