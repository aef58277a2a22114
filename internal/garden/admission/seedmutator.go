package admission

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
)

// seedMutatorPlugin is the admission plugin SeedMutator, which labels a Seed with its own name and, if it is a managed
// seed, with the name of the seed that the Shoot runs on.
var seedMutatorPlugin = plugin.Factory{
	Name:       "SeedMutator",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Seed"), admitSeedMutator, request.AnySubresource),
}

func admitSeedMutator(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, seed, _ *gardencore.Seed) error {
	parent, err := parentOf(ctx, deps.Reader, seed.Name)
	if err != nil {
		return err
	}
	seedcommon.SetNameLabels(seed, seed.Name, parent)
	return nil
}

// parentOf returns the name of the seed on which the Shoot of a managed seed runs, and "" if the seed is not a managed
// one.
func parentOf(ctx context.Context, r plugin.Reader, seed string) (string, error) {
	managedSeed, err := plugin.Get[*seedmanagement.ManagedSeed](ctx, r, seedmanagement.Resource("managedseeds"),
		v1beta1constants.GardenNamespace, seed)
	if apierrors.IsNotFound(err) || err == nil && managedSeed.Spec.Shoot == nil {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the managed seed of seed %q: %v", seed, err)
	}
	shootName := managedSeed.Spec.Shoot.Name
	shoot, err := plugin.Get[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), managedSeed.Namespace, shootName)
	if apierrors.IsNotFound(err) {
		return "", field.Invalid(field.NewPath("metadata", "name"), seed,
			fmt.Sprintf("belongs to a ManagedSeed whose shoot %s/%s does not exist", managedSeed.Namespace, shootName))
	}
	if err != nil {
		return "", fmt.Errorf("reading the shoot of managed seed %q: %v", seed, err)
	}
	return ptr.Deref(shoot.Spec.SeedName, ""), nil
}
