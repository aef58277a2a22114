package shootvalidator

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

const (
	// maxNames is the maximum number of characters that the names of a project and a Shoot may have together: both are
	// part of the names of many objects, some of which must be short.
	maxNames = 21
	// generatedSuffix is the number of characters that the API server appends to a generateName.
	generatedSuffix = 5
)

// validateProject checks that the project accepts a new Shoot and that its name is short enough. Existing Shoots are
// not checked.
func (r *request) validateProject(context.Context) error {
	if r.GetOperation() != admission.Create {
		return nil
	}
	name, limit := r.shoot.Name, maxNames
	if name == "" && r.shoot.GenerateName != "" {
		name, limit = r.shoot.GenerateName, maxNames-generatedSuffix
	}
	if len(r.project.Name)+len(name) > limit {
		return apierrors.NewInvalid(r.GetKind().GroupKind(), r.shoot.Name, field.ErrorList{field.Invalid(field.NewPath("name"), name,
			fmt.Sprintf("together with the name of the project %q it must have at most %d characters", r.project.Name, limit))})
	}
	if r.project.DeletionTimestamp != nil {
		return field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf("the project %q is being deleted", r.project.Name))
	}
	return nil
}

// validateDeletion refuses to delete a Shoot during a control plane migration.
func (r *request) validateDeletion(context.Context) error {
	if r.GetOperation() == admission.Delete && isMigrating(r.shoot) {
		return field.Forbidden(field.NewPath("metadata", "deletionTimestamp"),
			fmt.Sprintf("wait for the control plane migration: its last operation is %s, which is %s",
				r.shoot.Status.LastOperation.Type, r.shoot.Status.LastOperation.State))
	}
	return nil
}

// validateHibernation refuses to hibernate a Shoot whose constraint says that it could not be woken up, for instance
// because of its webhooks.
func (r *request) validateHibernation(context.Context) error {
	if !validation.HibernationEnabled(r.shoot.Spec.Hibernation) || validation.HibernationEnabled(r.old.Spec.Hibernation) {
		return nil
	}
	constraint := validation.Find(r.shoot.Status.Constraints, func(c *gardencore.Condition) bool {
		return c.Type == gardencore.ShootHibernationPossible
	})
	if constraint == nil || constraint.Status == gardencore.ConditionTrue {
		return nil
	}
	return field.Forbidden(specPath.Child("hibernation", "enabled"),
		fmt.Sprintf("the constraint %s of the Shoot is %s: %s", constraint.Type, constraint.Status, constraint.Message))
}

// validateManagedIssuer checks that the landscape can publish the public keys of a Shoot's service account tokens. A
// Shoot with a managed issuer must keep it, because third parties trust it.
func (r *request) validateManagedIssuer(ctx context.Context) error {
	is, was := hasManagedIssuer(r.shoot), hasManagedIssuer(r.old)
	if !is && !was {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1beta1constants.AnnotationAuthenticationIssuer)
	secrets, err := plugin.SecretsWithRole(ctx, r.deps.Kube, v1beta1constants.GardenRoleShootServiceAccountIssuer)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the configuration of the managed service account issuer: %w", err))
	}
	api := r.shoot.Spec.Kubernetes.KubeAPIServer
	switch {
	case len(secrets) == 0 && is:
		return field.Forbidden(path, "this landscape has no managed service account issuer")
	case len(secrets) == 0:
		return field.Forbidden(
			path, "the configuration of the landscape's managed service account issuer is missing: ask its operators to restore it")
	case was && !is:
		return field.Forbidden(path, "a managed service account issuer must be kept")
	case api != nil && api.ServiceAccountConfig != nil && api.ServiceAccountConfig.Issuer != nil:
		return field.Forbidden(
			path, "a managed service account issuer needs spec.kubernetes.kubeAPIServer.serviceAccountConfig.issuer to be unset")
	}
	return nil
}

func hasManagedIssuer(shoot *gardencore.Shoot) bool {
	return shoot.Annotations[v1beta1constants.AnnotationAuthenticationIssuer] == v1beta1constants.AnnotationAuthenticationIssuerManaged
}
