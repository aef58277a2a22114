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

// Binding is the subresource through which a Shoot gets its seed.
const Binding = "binding"

// IsShoot says whether a request is about a Shoot itself or, if given, one of these subresources of it.
func IsShoot(a admission.Attributes, subresources ...string) bool {
	return a.GetKind().GroupKind() == gardencore.Kind("Shoot") &&
		(a.GetSubresource() == "" || slices.Contains(subresources, a.GetSubresource()))
}

// Objects are the Shoot of a request and what it was before. When it is created, it was empty; when it is deleted, both
// are the stored Shoot.
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

// Refused is the answer to a request that failed with err: API errors stay what they are; field errors say what is wrong
// with the Shoot, so they forbid it; anything else is the server's fault.
func Refused(a admission.Attributes, err error) error {
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

// Forbidden forbids a request for all the errors, if there are any.
func Forbidden(a admission.Attributes, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return admission.NewForbidden(a, errs.ToAggregate())
}

// Get reads an object that a field names. If there is none, the error is about the field.
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

// hideStatus keeps Refused from passing on what the storage said as if it were about the Shoot.
type hideStatus struct{ error }

// Project is the Project whose namespace this is. If there is none, the error is about the namespace.
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

// Seed is the Seed that a Shoot's spec names; nil if it names none.
func Seed(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (*gardencore.Seed, error) {
	if shoot.Spec.SeedName == nil {
		return nil, nil
	}
	return Get[*gardencore.Seed](ctx, r, gardencore.Resource("seeds"), "", *shoot.Spec.SeedName, field.NewPath("spec", "seedName"))
}
