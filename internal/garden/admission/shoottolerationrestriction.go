package admission

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootTolerationPlugin is the admission plugin ShootTolerationRestriction: new Shoots get the default tolerations of
// their Project, and may have others only if the Project's whitelist has them.
var shootTolerationPlugin = plugin.Factory{
	Name:       "ShootTolerationRestriction",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootToleration, request.AnySubresource),
	Validate:   plugin.ForKind(gardencore.Kind("Shoot"), validateShootToleration, request.AnySubresource),
}

// admitShootToleration adds the Project's default tolerations whose keys a new Shoot does not have.
func admitShootToleration(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, _ *gardencore.Shoot) error {
	if a.GetOperation() != admission.Create {
		return nil
	}
	project, err := projectTolerations(ctx, deps.Reader, shoot)
	if err != nil {
		return err
	}
	own := shoot.Spec.Tolerations
	for _, toleration := range project.Defaults {
		if !slices.ContainsFunc(own, func(t gardencore.Toleration) bool { return t.Key == toleration.Key }) {
			shoot.Spec.Tolerations = append(shoot.Spec.Tolerations, *toleration.DeepCopy())
		}
	}
	return nil
}

// validateShootToleration accepts all tolerations that the Shoot had before.
func validateShootToleration(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	project, err := projectTolerations(ctx, deps.Reader, shoot)
	if err != nil {
		return err
	}
	var added []gardencore.Toleration
	for _, toleration := range shoot.Spec.Tolerations {
		if !slices.ContainsFunc(old.Spec.Tolerations, func(t gardencore.Toleration) bool { return equality.Semantic.DeepEqual(t, toleration) }) {
			added = append(added, toleration)
		}
	}
	return request.Forbidden(a, validation.ValidateTolerationsAgainstAllowlist(added, project.Whitelist, field.NewPath("spec", "tolerations")))
}

func projectTolerations(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (gardencore.ProjectTolerations, error) {
	project, err := shootcommon.Project(ctx, r, shoot.Namespace)
	if err != nil || project.Spec.Tolerations == nil {
		return gardencore.ProjectTolerations{}, err
	}
	return *project.Spec.Tolerations, nil
}
