package shootvalidator

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

var credentialsBindingPath = specPath.Child("credentialsBindingName")

// validateBindingMigration allows replacing a SecretBinding only by a CredentialsBinding with the same Secret.
func (r *request) validateBindingMigration(ctx context.Context) error {
	if r.old.Spec.SecretBindingName == nil || r.shoot.Spec.SecretBindingName != nil ||
		r.old.Spec.CredentialsBindingName != nil || r.credentialsBinding == nil {
		return nil
	}
	before, err := shootcommon.SecretBinding(ctx, r.deps.Reader, r.old)
	if err != nil {
		return err
	}
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: before.SecretRef.Namespace, Name: before.SecretRef.Name}
	ref := r.credentialsBinding.CredentialsRef
	if got := (corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}); got != want {
		return field.Forbidden(credentialsBindingPath,
			fmt.Sprintf("must refer to the same Secret as the SecretBinding %q before; change the Secret in a second step", before.Name))
	}
	return nil
}

// validateCredentialsChange requires that a user who replaces the binding may read both credentials. Otherwise a user
// with access to the Shoot but not to its cloud account could leave the Shoot's machines behind in that account.
func (r *request) validateCredentialsChange(ctx context.Context) error {
	before, after := r.old.Spec.CredentialsBindingName, r.shoot.Spec.CredentialsBindingName
	if before == nil || after == nil || *before == *after {
		return nil
	}
	old, err := shootcommon.CredentialsBinding(ctx, r.deps.Reader, r.old)
	if err != nil {
		return err
	}
	if err := r.mayRead(ctx, old); err != nil {
		return err
	}
	return r.mayRead(ctx, r.credentialsBinding)
}

// mayRead returns an error if the user may not read the credentials of a binding.
func (r *request) mayRead(ctx context.Context, binding *security.CredentialsBinding) error {
	ref := binding.CredentialsRef
	resource, ok := shootcommon.CredentialsResources[ref.APIVersion]
	if !ok {
		return field.Forbidden(credentialsBindingPath, fmt.Sprintf("the credentials of CredentialsBinding %q must be a "+
			"Secret, an InternalSecret or a WorkloadIdentity, not of API version %q", binding.Name, ref.APIVersion))
	}
	allowed, err := r.allowed(ctx, authorizer.AttributesRecord{
		Verb: "get", APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
		Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || allowed {
		return err
	}
	return field.Forbidden(credentialsBindingPath, fmt.Sprintf("user %q must be allowed to read the %s %s/%s of CredentialsBinding %q",
		r.GetUserInfo().GetName(), ref.Kind, ref.Namespace, ref.Name, binding.Name))
}

// allowed asks the authorizer whether the user may perform the request in the record.
func (r *request) allowed(ctx context.Context, record authorizer.AttributesRecord) (bool, error) {
	record.User, record.ResourceRequest = r.GetUserInfo(), true
	decision, _, err := r.deps.Authorizer.Authorize(ctx, record)
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("asking whether user %q may %s %s %s/%s: %w", record.User.GetName(),
			record.Verb, record.Resource, record.Namespace, record.Name, err))
	}
	return decision == authorizer.DecisionAllow, nil
}

// validateAdmissionPlugins checks that the kubeconfig of an admission plugin is in a Secret that the Shoot's resources
// list.
func (r *request) validateAdmissionPlugins(ctx context.Context) field.ErrorList {
	if r.shoot.Spec.Kubernetes.KubeAPIServer == nil {
		return nil
	}
	listed := map[string]bool{}
	for _, resource := range r.shoot.Spec.Resources {
		if ref := resource.ResourceRef; ref.APIVersion == "v1" && ref.Kind == "Secret" {
			listed[ref.Name] = true
		}
	}
	var errs field.ErrorList
	for i, plugin := range r.shoot.Spec.Kubernetes.KubeAPIServer.AdmissionPlugins {
		path := specPath.Child("kubernetes", "kubeAPIServer", "admissionPlugins").Index(i).Child("kubeconfigSecretName")
		if name := plugin.KubeconfigSecretName; name == nil {
			continue
		} else if !listed[*name] {
			errs = append(errs, field.Invalid(path, *name, "must be one of the Secrets in spec.resources"))
		} else if err := r.validateKubeconfigSecret(ctx, *name, path); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (r *request) validateKubeconfigSecret(ctx context.Context, name string, path *field.Path) *field.Error {
	if name == "" {
		return field.NotFound(path, name)
	}
	secret, err := r.deps.Kube.CoreV1().Secrets(r.shoot.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return field.NotFound(path, name)
	}
	if err != nil {
		return field.InternalError(path, fmt.Errorf("reading Secret %s/%s: %w", r.shoot.Namespace, name, err))
	}
	if _, ok := secret.Data["kubeconfig"]; !ok {
		return field.Invalid(path, name, "the Secret must have a kubeconfig under the key kubeconfig")
	}
	return nil
}
