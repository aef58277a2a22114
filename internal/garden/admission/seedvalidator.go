package admission

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
)

// seedValidatorPlugin is the admission plugin SeedValidator: it refuses changes and the deletion of a Seed that would
// break its Shoots, and checks that the backup credentials have the type of the backup provider.
var seedValidatorPlugin = plugin.Factory{
	Name:       "SeedValidator",
	Operations: plugin.OnAnyChange,
	Validate:   plugin.ForKind(gardencore.Kind("Seed"), validateSeed),
}

func validateSeed(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, seed, old *gardencore.Seed) error {
	switch a.GetOperation() {
	case admission.Delete:
		return validateDelete(ctx, deps, a, seed.Name)
	case admission.Update:
		errs, err := validateSeedUpdate(ctx, deps, seed, old)
		if err != nil {
			return err
		}
		if len(errs) > 0 {
			return request.Forbidden(a, errs)
		}
	}
	backup := seed.Spec.Backup
	if backup == nil {
		return nil
	}
	return seedcommon.ValidateCredentialsType(ctx, deps.Reader, backup.CredentialsRef, backup.Provider,
		field.NewPath("spec", "backup", "credentialsRef"))
}

func validateSeedUpdate(ctx context.Context, deps plugin.Dependencies, seed, old *gardencore.Seed) (field.ErrorList, error) {
	errs, err := seedcommon.ValidateChange(ctx, deps.Reader, deps.Kube, seed.Name, &seed.Spec, &old.Spec, field.NewPath("spec"))
	if label := v1beta1constants.LabelSelfHostedShootCluster; metav1.HasLabel(old.ObjectMeta, label) &&
		!metav1.HasLabel(seed.ObjectMeta, label) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(label), "must not be removed"))
	}
	return errs, err
}

// validateDelete refuses to delete a Seed with Shoots. Backups are not checked: they are deleted with the Seed, or the
// gardenlet keeps the Seed's finalizer until they are gone.
func validateDelete(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, name string) error {
	shoots, err := seedcommon.Shoots(ctx, deps.Reader, name)
	if err != nil {
		return err
	}
	if len(shoots) > 0 {
		return admission.NewForbidden(
			a, fmt.Errorf("seed %q still has shoots, among them %s/%s; delete or move them first", name, shoots[0].Namespace, shoots[0].Name))
	}
	return nil
}
