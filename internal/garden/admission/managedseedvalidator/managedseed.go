// Package managedseedvalidator contains the admission plugin ManagedSeed: it defaults the seed template of a
// ManagedSeed from the Shoot that becomes a seed, and validates that the template agrees with the Shoot.
//
// managedseed.go has the plugin and reads the Shoot, defaults.go defaults the template, dns.go finds the DNS provider
// for it, and validate.go compares it with the Shoot. As in Gardener, it refuses a ManagedSeed as Invalid, not as
// Forbidden; this includes what makes Gardener's plugin fail, like a Shoot without networks.
package managedseedvalidator

import (
	"context"
	"errors"
	"fmt"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// Factory creates the plugin.
var Factory = plugin.Factory{
	Name:       "ManagedSeed",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(kind, admit),
	Validate:   plugin.ForKind(kind, validate),
}

var (
	kind          = seedmanagement.Kind("ManagedSeed")
	shootNamePath = field.NewPath("spec", "shoot", "name")
	configPath    = field.NewPath("spec", "gardenlet", "config")
	seedPath      = configPath.Child("seedConfig")
	seedSpecPath  = seedPath.Child("spec")
)

func admit(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, seed, _ *seedmanagement.ManagedSeed) error {
	if !hasShoot(seed) {
		return nil // a webhook may still set the Shoot; if it is missing then, validation refuses the ManagedSeed
	}
	shoot, err := shootOf(ctx, deps, seed)
	if err != nil {
		return toAPIError(seed, nil, err)
	}
	seedcommon.SetNameLabels(seed, ptr.Deref(shoot.Spec.SeedName, ""))
	return toAPIError(seed, nil, setDefaults(ctx, deps, seed.Spec.Gardenlet.Config, shoot))
}

func validate(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, seed, old *seedmanagement.ManagedSeed) error {
	if seed.Namespace != v1beta1constants.GardenNamespace {
		return toAPIError(seed, nil,
			field.Invalid(field.NewPath("metadata", "namespace"), seed.Namespace, "must be "+v1beta1constants.GardenNamespace))
	}
	if !hasShoot(seed) {
		return nil // the API validation refuses it
	}
	shoot, err := shootOf(ctx, deps, seed)
	if err != nil {
		return toAPIError(seed, nil, err)
	}
	errs := validateShoot(shoot)
	used, err := validateUnused(ctx, deps, seed)
	if err != nil {
		return toAPIError(seed, nil, err)
	}
	errs = append(errs, used...)
	if a.GetOperation() == admission.Create {
		old = nil
	}
	of, err := validateTemplate(ctx, deps, seed, old, shoot)
	return toAPIError(seed, append(errs, of...), err)
}

// toAPIError returns one Invalid error with errs and err if err is a field error, and an InternalError if err is
// another error.
func toAPIError(seed *seedmanagement.ManagedSeed, errs field.ErrorList, err error) error {
	if fieldErr := (*field.Error)(nil); errors.As(err, &fieldErr) {
		errs = append(errs, fieldErr)
	} else if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(kind, seed.Name, errs)
	}
	return nil
}

func hasShoot(seed *seedmanagement.ManagedSeed) bool {
	return seed.Spec.Shoot != nil && seed.Spec.Shoot.Name != ""
}

// shootOf returns the Shoot that becomes a seed, or a field error if it does not exist.
func shootOf(ctx context.Context, deps plugin.Dependencies, seed *seedmanagement.ManagedSeed) (*gardencore.Shoot, error) {
	name := seed.Spec.Shoot.Name
	return get[*gardencore.Shoot](ctx, deps.Reader, gardencore.Resource("shoots"), seed.Namespace, name, func(message string) error {
		return field.Invalid(shootNamePath, name, message)
	})
}

// get reads an object. If it does not exist, get returns the error that missing creates from a message.
func get[T runtime.Object](ctx context.Context, r plugin.Reader, resource schema.GroupResource, namespace, name string,
	missing func(string) error) (T, error) {
	obj, err := plugin.Get[T](ctx, r, resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return obj, missing(fmt.Sprintf("there is no %s %s/%s", resource.Resource, namespace, name))
	case err != nil:
		return obj, fmt.Errorf("reading %s %s/%s: %v", resource, namespace, name, err)
	}
	return obj, nil
}

// configuration returns config as a GardenletConfiguration, or a field error if it is of another type.
func configuration(config any) (*gardenletconfigv1alpha1.GardenletConfiguration, error) {
	typed, ok := config.(*gardenletconfigv1alpha1.GardenletConfiguration)
	if !ok {
		return nil, field.Invalid(configPath, fmt.Sprintf("%T", config), "must be a GardenletConfiguration")
	}
	return typed, nil
}

// toInternal and toExternal convert seed templates as Seeds, because the scheme has no conversion for templates.
func toInternal(template *gardencorev1beta1.SeedTemplate) (*gardencore.SeedSpec, error) {
	seed := &gardencore.Seed{}
	if err := scheme.Scheme.Convert(&gardencorev1beta1.Seed{Spec: *template.Spec.DeepCopy()}, seed, nil); err != nil {
		return nil, field.Invalid(seedPath, "", fmt.Sprintf("must be convertible to the internal version: %v", err))
	}
	return &seed.Spec, nil
}

func toExternal(spec *gardencore.SeedSpec, template *gardencorev1beta1.SeedTemplate) error {
	seed := &gardencorev1beta1.Seed{}
	if err := scheme.Scheme.Convert(&gardencore.Seed{Spec: *spec}, seed, nil); err != nil {
		return field.Invalid(seedPath, "", fmt.Sprintf("must be convertible to the version of the configuration: %v", err))
	}
	template.Spec = seed.Spec
	return nil
}
