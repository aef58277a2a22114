package admission

import (
	"context"
	"fmt"
	"slices"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootManagedSeedPlugin is the admission plugin ShootManagedSeed. While a ManagedSeed refers to a Shoot, it refuses
// to delete the Shoot, and to change it in a way that breaks the seed.
var shootManagedSeedPlugin = plugin.Factory{
	Name:       "ShootManagedSeed",
	Operations: []admission.Operation{admission.Update, admission.Delete},
	Validate:   plugin.ForKind(gardencore.Kind("Shoot"), validateShootManagedSeed),
}

func validateShootManagedSeed(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	seeds, err := managedSeedsOf(ctx, deps.Reader, a.GetNamespace(), a.GetName())
	if err != nil || len(seeds) == 0 {
		return err
	}
	seed := seeds[0]
	if a.GetOperation() == admission.Delete {
		return admission.NewForbidden(
			a, fmt.Errorf("shoot %s/%s is the seed %q: delete the ManagedSeed first", seed.Namespace, seed.Spec.Shoot.Name, seed.Name))
	}
	if len(seeds) > 1 {
		return field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("%d ManagedSeeds refer to the Shoot; delete all but one first", len(seeds)))
	}
	if errs := validateManagedShootUpdate(shoot, old, seed); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), shoot.Name, errs)
	}
	return nil
}

// managedSeedsOf returns the ManagedSeeds that refer to a Shoot; there should be at most one. A DeleteCollection
// request has no name, so all ManagedSeeds of the namespace's Shoots are returned: one of them is enough to refuse the
// request.
func managedSeedsOf(ctx context.Context, r plugin.Reader, namespace, shoot string) ([]*seedmanagement.ManagedSeed, error) {
	if namespace != constants.GardenNamespace { // all ManagedSeeds are in this namespace
		return nil, nil
	}
	names, selector := sets.New(shoot), fields.OneTermEqualSelector(seedmanagement.ManagedSeedShootName, shoot)
	if shoot == "" {
		shoots, err := plugin.List[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), namespace, nil)
		if err != nil {
			return nil, fmt.Errorf("listing the Shoots of namespace %q: %v", namespace, err)
		}
		for _, s := range shoots {
			names.Insert(s.Name)
		}
		selector = fields.Everything()
	}
	seeds, err := plugin.List[*seedmanagement.ManagedSeed](ctx, r, seedmanagement.Resource("managedseeds"), namespace, selector)
	if err != nil {
		return nil, fmt.Errorf("listing the ManagedSeeds of namespace %q: %v", namespace, err)
	}
	return slices.DeleteFunc(seeds, func(seed *seedmanagement.ManagedSeed) bool {
		return seed.Spec.Shoot == nil || !names.Has(seed.Spec.Shoot.Name)
	}), nil
}

func validateManagedShootUpdate(shoot, old *gardencore.Shoot, seed *seedmanagement.ManagedSeed) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	errs = append(errs, validation.InvalidIf(validation.NginxIngressEnabled(shoot.Spec.Addons),
		spec.Child("addons", "nginxIngress", "enabled"), true, "a seed has an ingress controller of its own")...)
	if vpa := shoot.Spec.Kubernetes.VerticalPodAutoscaler; vpa == nil || !vpa.Enabled {
		errs = append(errs, field.Invalid(spec.Child("kubernetes", "verticalPodAutoscaler", "enabled"), false,
			"a seed needs the vertical pod autoscaler"))
	}
	before := ptr.Deref(old.Spec.Networking, gardencore.Networking{}).Nodes
	after := ptr.Deref(shoot.Spec.Networking, gardencore.Networking{}).Nodes
	if before != nil && !ptr.Equal(before, after) {
		errs = append(errs, field.Invalid(spec.Child("networking", "nodes"), after, "must not change while the Shoot is a seed"))
	}
	workers := spec.Child("providers", "workers") // spelled as in Gardener
	if zones, known := seedZones(seed); !known {
		errs = append(errs, field.Forbidden(
			workers, fmt.Sprintf("the ManagedSeed %q has no seed template to compare with; give it one first", seed.Name)))
	} else if shootcommon.WorkerZones(old).Difference(shootcommon.WorkerZones(shoot)).HasAny(zones...) {
		errs = append(errs, field.Forbidden(workers, "must not give up zones that the ManagedSeed still has in its seed template"))
	}
	return errs
}

// seedZones returns the zones of the seed template, and whether there is a seed template.
func seedZones(seed *seedmanagement.ManagedSeed) (zones []string, known bool) {
	config, ok := seed.Spec.Gardenlet.Config.(*gardenletconfigv1alpha1.GardenletConfiguration)
	if !ok || config.SeedConfig == nil {
		return nil, false
	}
	return config.SeedConfig.Spec.Provider.Zones, true
}
