// Package seedvalidator contains the admission plugin SeedValidator: it refuses changes and the deletion of a Seed that
// would break its Shoots, and checks that the backup credentials have the type of the backup provider. It may import
// the plugin, request, seedcommon and shootcommon packages.
package seedvalidator

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "SeedValidator", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &validator{admission.NewHandler(admission.Create, admission.Update, admission.Delete), deps}, nil
	}}
}

type validator struct {
	*admission.Handler
	deps plugin.Dependencies
}

var _ admission.ValidationInterface = &validator{}

// Validate implements admission.ValidationInterface.
func (v *validator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !request.IsForKind(a, gardencore.Kind("Seed")) {
		return nil
	}
	if a.GetOperation() == admission.Delete {
		return shootcommon.ToAPIError(a, v.validateDelete(ctx, a, request.Name(a)))
	}
	seed, old, err := request.Objects[gardencore.Seed](a)
	if err != nil {
		return err
	}
	if a.GetOperation() == admission.Update {
		errs, err := v.validateUpdate(ctx, seed, old)
		if err != nil || len(errs) > 0 {
			return answer(a, errs, err)
		}
	}
	if backup := seed.Spec.Backup; backup != nil {
		return shootcommon.ToAPIError(a, seedcommon.ValidateCredentialsType(ctx, v.deps.Reader, backup.CredentialsRef,
			backup.Provider, field.NewPath("spec", "backup", "credentialsRef")))
	}
	return nil
}

func answer(a admission.Attributes, errs field.ErrorList, err error) error {
	if err != nil {
		return shootcommon.ToAPIError(a, err)
	}
	return shootcommon.Forbidden(a, errs)
}

func (v *validator) validateUpdate(ctx context.Context, seed, old *gardencore.Seed) (field.ErrorList, error) {
	errs, err := seedcommon.ValidateChange(ctx, v.deps.Reader, v.deps.Kube, seed.Name, &seed.Spec, &old.Spec, field.NewPath("spec"))
	if label := v1beta1constants.LabelSelfHostedShootCluster; metav1.HasLabel(old.ObjectMeta, label) &&
		!metav1.HasLabel(seed.ObjectMeta, label) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(label), "must not be removed"))
	}
	return errs, err
}

// validateDelete refuses to delete a Seed with Shoots. Backups are not checked: they are deleted with the Seed, or the
// gardenlet keeps the Seed's finalizer until they are gone.
func (v *validator) validateDelete(ctx context.Context, a admission.Attributes, name string) error {
	shoots, err := seedcommon.Shoots(ctx, v.deps.Reader, name)
	if err != nil {
		return err
	}
	if len(shoots) > 0 {
		return admission.NewForbidden(
			a, fmt.Errorf("seed %q still has shoots, among them %s/%s; delete or move them first", name, shoots[0].Namespace, shoots[0].Name))
	}
	return nil
}
