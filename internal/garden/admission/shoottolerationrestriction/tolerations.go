// Package shoottolerationrestriction contains the admission plugin ShootTolerationRestriction: new Shoots get the
// default tolerations of their Project, and may have others only if the Project's whitelist has them.
//
// It may import the plugin package, shootcommon and the validation helpers.
package shoottolerationrestriction

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ShootTolerationRestriction", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return restriction{admission.NewHandler(admission.Create, admission.Update), deps.Reader}, nil
	}}
}

type restriction struct {
	*admission.Handler
	reader plugin.Reader
}

var (
	_ admission.MutationInterface   = restriction{}
	_ admission.ValidationInterface = restriction{}
)

// Admit implements admission.MutationInterface. It adds the Project's default tolerations whose keys the Shoot does not
// have.
func (r restriction) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Create || !shootcommon.IsShoot(a, a.GetSubresource()) {
		return nil
	}
	shoot, _, err := shootcommon.Objects(a)
	if err != nil {
		return err
	}
	project, err := r.tolerations(ctx, shoot)
	if err != nil {
		return shootcommon.ToAPIError(a, err)
	}
	own := shoot.Spec.Tolerations
	for _, toleration := range project.Defaults {
		if !slices.ContainsFunc(own, func(t gardencore.Toleration) bool { return t.Key == toleration.Key }) {
			shoot.Spec.Tolerations = append(shoot.Spec.Tolerations, *toleration.DeepCopy())
		}
	}
	return nil
}

// Validate implements admission.ValidationInterface. Tolerations that the Shoot had before may stay.
func (r restriction) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !shootcommon.IsShoot(a, a.GetSubresource()) {
		return nil
	}
	shoot, old, err := shootcommon.Objects(a)
	if err != nil {
		return err
	}
	project, err := r.tolerations(ctx, shoot)
	if err != nil {
		return shootcommon.ToAPIError(a, err)
	}
	var added []gardencore.Toleration
	for _, toleration := range shoot.Spec.Tolerations {
		if !slices.ContainsFunc(old.Spec.Tolerations, func(t gardencore.Toleration) bool { return equality.Semantic.DeepEqual(t, toleration) }) {
			added = append(added, toleration)
		}
	}
	return shootcommon.Forbidden(
		a, validation.ValidateTolerationsAgainstAllowlist(added, project.Whitelist, field.NewPath("spec", "tolerations")))
}

func (r restriction) tolerations(ctx context.Context, shoot *gardencore.Shoot) (gardencore.ProjectTolerations, error) {
	project, err := shootcommon.Project(ctx, r.reader, shoot.Namespace)
	if err != nil || project.Spec.Tolerations == nil {
		return gardencore.ProjectTolerations{}, err
	}
	return *project.Spec.Tolerations, nil
}
