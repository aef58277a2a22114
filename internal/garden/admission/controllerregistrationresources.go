package admission

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// controllerRegistrationResourcesPlugin is the admission plugin ControllerRegistrationResources: for each kind and
// type of extension resource, at most one ControllerRegistration may be primarily responsible.
var controllerRegistrationResourcesPlugin = plugin.Factory{
	Name:       "ControllerRegistrationResources",
	Operations: plugin.OnCreateOrUpdate,
	Validate:   plugin.ForKind(gardencore.Kind("ControllerRegistration"), validateControllerRegistrationResources, request.AnySubresource),
}

// typeOwner is a type of an extension resource, and the name of the ControllerRegistration that is responsible for it.
type typeOwner struct{ typ, registration string }

func validateControllerRegistrationResources(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, registration,
	_ *gardencore.ControllerRegistration) error {
	others, err := plugin.List[*gardencore.ControllerRegistration](ctx, deps.Reader, gardencore.Resource("controllerregistrations"), "", nil)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the controller registrations: %w", err))
	}
	// As in Gardener, only one type per kind is checked: the last one in the order of the registrations' names. If
	// registrations have several types of a kind, the other types may be registered once more.
	responsible := map[string]typeOwner{}
	for _, other := range others {
		if other.Name == registration.Name {
			continue
		}
		for _, resource := range other.Spec.Resources {
			if ptr.Deref(resource.Primary, true) {
				responsible[resource.Kind] = typeOwner{resource.Type, other.Name}
			}
		}
	}
	for i, resource := range registration.Spec.Resources {
		other, taken := responsible[resource.Kind]
		if taken && other.typ == resource.Type && ptr.Deref(resource.Primary, true) {
			return field.Forbidden(field.NewPath("spec", "resources").Index(i),
				fmt.Sprintf("ControllerRegistration %q is primarily responsible for %s resources of type %q already; set primary to false",
					other.registration, resource.Kind, resource.Type))
		}
	}
	return nil
}
