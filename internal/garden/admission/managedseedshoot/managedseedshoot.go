// Package managedseedshoot contains the admission plugin ManagedSeedShoot, which refuses to delete a ManagedSeed while
// its seed has Shoots.
//
// It may import the plugin, request and seedcommon packages.
package managedseedshoot

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ManagedSeedShoot", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &validator{admission.NewHandler(admission.Delete), deps.Reader}, nil
	}}
}

type validator struct {
	*admission.Handler
	reader plugin.Reader
}

var _ admission.ValidationInterface = &validator{}

// Validate implements admission.ValidationInterface.
func (v *validator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !request.IsForKind(a, seedmanagement.Kind("ManagedSeed")) {
		return nil
	}
	names, err := v.names(ctx, a.GetName())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for _, name := range names {
		shoots, err := seedcommon.Shoots(ctx, v.reader, name)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if len(shoots) > 0 {
			return admission.NewForbidden(
				a, fmt.Errorf("the seed %q still has shoots, among them %s/%s; delete or move them first", name, shoots[0].Namespace, shoots[0].Name))
		}
	}
	return nil
}

// names returns the names of the ManagedSeeds to check. A DeleteCollection request has no name; as in Gardener, it is
// refused if any ManagedSeed of the landscape has Shoots.
func (v *validator) names(ctx context.Context, name string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	seeds, err := plugin.List[*seedmanagement.ManagedSeed](ctx, v.reader, seedmanagement.Resource("managedseeds"), "", nil)
	if err != nil {
		return nil, fmt.Errorf("listing the ManagedSeeds: %v", err)
	}
	var names []string
	for _, seed := range seeds {
		names = append(names, seed.Name)
	}
	return names, nil
}
