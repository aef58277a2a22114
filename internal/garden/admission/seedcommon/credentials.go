package seedcommon

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// ValidateCredentialsType returns a field error if ref, at path, is a WorkloadIdentity that does not exist or is not of
// the provider's type. It accepts references to other kinds.
func ValidateCredentialsType(ctx context.Context, r plugin.Reader, ref *corev1.ObjectReference, provider string, path *field.Path) error {
	if ref == nil || ref.APIVersion != securityv1alpha1.SchemeGroupVersion.String() || ref.Kind != "WorkloadIdentity" {
		return nil
	}
	identity, err := shootcommon.Get[*security.WorkloadIdentity](ctx, r, security.Resource("workloadidentities"),
		ref.Namespace, ref.Name, path)
	if err != nil {
		return err
	}
	if identity.Spec.TargetSystem.Type != provider {
		return field.Invalid(path, ref.Namespace+"/"+ref.Name,
			fmt.Sprintf("is a WorkloadIdentity of type %q; must be one of type %q", identity.Spec.TargetSystem.Type, provider))
	}
	return nil
}
