// Package seedmutator contains the admission plugin SeedMutator, which labels a Seed with its own name and, if it is a
// managed seed, with the name of the seed that the Shoot runs on. It may import the plugin, request, seedcommon and
// shootcommon packages.
package seedmutator

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
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "SeedMutator", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &mutator{admission.NewHandler(admission.Create, admission.Update), deps.Reader}, nil
	}}
}

type mutator struct {
	*admission.Handler
	reader plugin.Reader
}

var _ admission.MutationInterface = &mutator{}

// Admit implements admission.MutationInterface.
func (m *mutator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetKind().GroupKind() != gardencore.Kind("Seed") {
		return nil
	}
	seed, _, err := request.Objects[gardencore.Seed](a)
	if err != nil {
		return err
	}
	parent, err := m.parent(ctx, seed.Name)
	if err != nil {
		return shootcommon.ToAPIError(a, err)
	}
	seedcommon.SetNameLabels(seed, seed.Name, parent)
	return nil
}

// parent returns the name of the seed on which the Shoot of a managed seed runs, and "" if the seed is not a managed
// one.
func (m *mutator) parent(ctx context.Context, seed string) (string, error) {
	managedSeed, err := plugin.Get[*seedmanagement.ManagedSeed](ctx, m.reader, seedmanagement.Resource("managedseeds"),
		v1beta1constants.GardenNamespace, seed)
	if apierrors.IsNotFound(err) || err == nil && managedSeed.Spec.Shoot == nil {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the managed seed of seed %q: %v", seed, err)
	}
	shootName := managedSeed.Spec.Shoot.Name
	shoot, err := plugin.Get[*gardencore.Shoot](ctx, m.reader, gardencore.Resource("shoots"), managedSeed.Namespace, shootName)
	if apierrors.IsNotFound(err) {
		return "", field.Invalid(field.NewPath("metadata", "name"), seed,
			fmt.Sprintf("belongs to a ManagedSeed whose shoot %s/%s does not exist", managedSeed.Namespace, shootName))
	}
	if err != nil {
		return "", fmt.Errorf("reading the shoot of managed seed %q: %v", seed, err)
	}
	return ptr.Deref(shoot.Spec.SeedName, ""), nil
}
