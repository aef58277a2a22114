package admission

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
)

// managedSeedShootPlugin is the admission plugin ManagedSeedShoot, which refuses to delete a ManagedSeed while its
// seed has Shoots.
var managedSeedShootPlugin = plugin.Factory{
	Name:       "ManagedSeedShoot",
	Operations: []admission.Operation{admission.Delete},
	Validate:   validateManagedSeedShoot,
}

func validateManagedSeedShoot(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	if !request.IsForKind(a, seedmanagement.Kind("ManagedSeed")) {
		return nil
	}
	names, err := managedSeedNames(ctx, deps.Reader, a.GetName())
	if err != nil {
		return err
	}
	for _, name := range names {
		shoots, err := seedcommon.Shoots(ctx, deps.Reader, name)
		if err != nil {
			return err
		}
		if len(shoots) > 0 {
			return admission.NewForbidden(
				a, fmt.Errorf("the seed %q still has shoots, among them %s/%s; delete or move them first", name, shoots[0].Namespace, shoots[0].Name))
		}
	}
	return nil
}

// managedSeedNames returns the names of the ManagedSeeds to check. A DeleteCollection request has no name; as in
// Gardener, it is refused if any ManagedSeed of the landscape has Shoots.
func managedSeedNames(ctx context.Context, r plugin.Reader, name string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	seeds, err := plugin.List[*seedmanagement.ManagedSeed](ctx, r, seedmanagement.Resource("managedseeds"), "", nil)
	if err != nil {
		return nil, fmt.Errorf("listing the ManagedSeeds: %v", err)
	}
	var names []string
	for _, seed := range seeds {
		names = append(names, seed.Name)
	}
	return names, nil
}
