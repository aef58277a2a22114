package admission

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// shootExposureClassPlugin is the admission plugin ShootExposureClass, which merges the seed selector and tolerations
// of the ExposureClass of a new Shoot into those of the Shoot.
var shootExposureClassPlugin = plugin.Factory{
	Name:       "ShootExposureClass",
	Operations: plugin.OnCreate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootExposureClass),
}

func admitShootExposureClass(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, shoot, _ *gardencore.Shoot) error {
	if shoot.Spec.ExposureClassName == nil {
		return nil
	}
	class, err := shootcommon.Get[*gardencore.ExposureClass](ctx, deps.Reader, gardencore.Resource("exposureclasses"), "",
		*shoot.Spec.ExposureClassName, field.NewPath("spec", "exposureClassName"))
	if err != nil {
		return err
	}
	if class.Scheduling == nil {
		return nil
	}
	scheduling := class.Scheduling.DeepCopy()
	if err := uniteSelectors(&shoot.Spec, scheduling.SeedSelector); err != nil {
		return err
	}
	return uniteTolerations(&shoot.Spec, scheduling.Tolerations)
}

func uniteSelectors(spec *gardencore.ShootSpec, class *gardencore.SeedSelector) error {
	if class == nil {
		return nil
	}
	var own gardencore.SeedSelector
	if spec.SeedSelector != nil {
		own = *spec.SeedSelector
	}
	if labels.Conflicts(own.MatchLabels, class.MatchLabels) {
		return field.Forbidden(field.NewPath("spec", "seedSelector", "matchLabels"), "must not ask for other values than the ExposureClass does")
	}
	own.MatchLabels = labels.Merge(own.MatchLabels, class.MatchLabels)
	own.MatchExpressions = append(own.MatchExpressions, class.MatchExpressions...)
	own.ProviderTypes = sets.List(sets.New(own.ProviderTypes...).Insert(class.ProviderTypes...))
	spec.SeedSelector = &own
	return nil
}

func uniteTolerations(spec *gardencore.ShootSpec, class []gardencore.Toleration) error {
	own := sets.New[string]()
	for _, toleration := range spec.Tolerations {
		own.Insert(toleration.Key)
	}
	for _, toleration := range class {
		if own.Has(toleration.Key) {
			return field.Forbidden(field.NewPath("spec", "tolerations"), "must not have the key "+toleration.Key+", which the ExposureClass has")
		}
		spec.Tolerations = append(spec.Tolerations, toleration)
	}
	return nil
}
