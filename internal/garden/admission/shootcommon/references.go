package shootcommon

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// Binding is the subresource that sets the seed of a Shoot.
const Binding = "binding"

// Get reads the object that the field at path refers to. If it does not exist, Get returns a field error.
func Get[T runtime.Object](ctx context.Context, r plugin.Reader, resource schema.GroupResource, namespace, name string,
	path *field.Path) (T, error) {
	obj, err := plugin.Get[T](ctx, r, resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return obj, field.NotFound(path, name)
	case err != nil:
		return obj, fmt.Errorf("reading %s %q of %s: %w", resource, name, path, hideStatus{err})
	}
	return obj, nil
}

// hideStatus wraps an API error of the storage so that request.ToAPIError does not return it as if it were about the
// Shoot.
type hideStatus struct{ error }

// Project returns the Project of the namespace. If there is none, it returns a field error for the namespace.
func Project(ctx context.Context, r plugin.Reader, namespace string) (*gardencore.Project, error) {
	projects, err := plugin.List[*gardencore.Project](ctx, r, gardencore.Resource("projects"), "",
		fields.OneTermEqualSelector(gardencore.ProjectNamespace, namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the projects of namespace %q: %w", namespace, hideStatus{err})
	}
	for _, project := range projects {
		if project.Spec.Namespace != nil && *project.Spec.Namespace == namespace {
			return project, nil
		}
	}
	return nil, &field.Error{Type: field.ErrorTypeNotFound, Field: "metadata.namespace", BadValue: namespace,
		Detail: "Shoots live in the namespace of a Project"}
}

// Seed returns the Seed that the Shoot's spec names, and nil if it names none.
func Seed(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (*gardencore.Seed, error) {
	if shoot.Spec.SeedName == nil {
		return nil, nil
	}
	return Get[*gardencore.Seed](ctx, r, gardencore.Resource("seeds"), "", *shoot.Spec.SeedName, field.NewPath("spec", "seedName"))
}

// RegisteredResources returns the resources of all ControllerRegistrations.
func RegisteredResources(ctx context.Context, r plugin.Reader) ([]gardencore.ControllerResource, error) {
	registrations, err := plugin.List[*gardencore.ControllerRegistration](ctx, r, gardencore.Resource("controllerregistrations"), "", nil)
	if err != nil {
		return nil, fmt.Errorf("listing the registrations of extensions: %v", err)
	}
	var all []gardencore.ControllerResource
	for _, registration := range registrations {
		all = append(all, registration.Spec.Resources...)
	}
	return all, nil
}

// SecretBinding returns the SecretBinding of the Shoot, and nil if the spec names none.
func SecretBinding(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (*gardencore.SecretBinding, error) {
	if shoot.Spec.SecretBindingName == nil {
		return nil, nil
	}
	return Get[*gardencore.SecretBinding](ctx, r, gardencore.Resource("secretbindings"), shoot.Namespace,
		*shoot.Spec.SecretBindingName, field.NewPath("spec", "secretBindingName"))
}

// CredentialsBinding returns the CredentialsBinding of the Shoot, and nil if the spec names none.
func CredentialsBinding(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (*security.CredentialsBinding, error) {
	if shoot.Spec.CredentialsBindingName == nil {
		return nil, nil
	}
	return Get[*security.CredentialsBinding](ctx, r, security.Resource("credentialsbindings"), shoot.Namespace,
		*shoot.Spec.CredentialsBindingName, field.NewPath("spec", "credentialsBindingName"))
}

// CredentialsResources are the resources that a CredentialsBinding may refer to, by API version: there is one per API
// version.
var CredentialsResources = map[string]schema.GroupVersionResource{
	corev1.SchemeGroupVersion.String():            corev1.SchemeGroupVersion.WithResource("secrets"),
	gardencorev1beta1.SchemeGroupVersion.String(): gardencorev1beta1.SchemeGroupVersion.WithResource("internalsecrets"),
	securityv1alpha1.SchemeGroupVersion.String():  securityv1alpha1.SchemeGroupVersion.WithResource("workloadidentities"),
}
