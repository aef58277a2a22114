package shootcommon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// Binding is the subresource that sets the seed of a Shoot.
const Binding = "binding"

// IsShoot reports whether the request is for a Shoot itself or for one of the given subresources of it.
func IsShoot(a admission.Attributes, subresources ...string) bool {
	return a.GetKind().GroupKind() == gardencore.Kind("Shoot") &&
		(a.GetSubresource() == "" || slices.Contains(subresources, a.GetSubresource()))
}

// Objects returns the new and the old Shoot of a request. For a create request, the old Shoot is empty; for a delete
// request, both are the stored Shoot.
func Objects(a admission.Attributes) (shoot, old *gardencore.Shoot, err error) {
	old = &gardencore.Shoot{}
	if a.GetOperation() != admission.Create {
		if old, err = toShoot(a.GetOldObject()); err != nil {
			return nil, nil, err
		}
	}
	if a.GetOperation() == admission.Delete {
		return old, old, nil
	}
	shoot, err = toShoot(a.GetObject())
	return shoot, old, err
}

func toShoot(obj runtime.Object) (*gardencore.Shoot, error) {
	shoot, ok := obj.(*gardencore.Shoot)
	if !ok || shoot == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request is about a Shoot but carries a %T", obj))
	}
	return shoot, nil
}

// ToAPIError converts err to the API error that answers the request: API errors are returned unchanged; field errors mean
// that the Shoot is wrong and become Forbidden; any other error becomes an InternalError. It returns nil for nil.
func ToAPIError(a admission.Attributes, err error) error {
	if err == nil {
		return nil
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	if fieldErr := (*field.Error)(nil); errors.As(err, &fieldErr) {
		return admission.NewForbidden(a, err)
	}
	return apierrors.NewInternalError(err)
}

// Forbidden returns a Forbidden error with all the field errors, and nil if there are none.
func Forbidden(a admission.Attributes, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return admission.NewForbidden(a, errs.ToAggregate())
}

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

// hideStatus wraps an API error of the storage so that ToAPIError does not return it as if it were about the Shoot.
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
