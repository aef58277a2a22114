// Package shootvalidator contains the admission plugin ShootValidator. It validates a Shoot against the objects that it
// refers to: what its CloudProfile offers, whether its Seed accepts it, whether its bindings fit, and whether another
// Shoot has its domain. In updates it validates only what has changed, so that a Shoot can still be changed if its
// CloudProfile does not offer all of it any more.
//
// It does not change its arguments. If a referenced object does not exist, it returns an error about the referring
// field, not an internal error.
package shootvalidator

import (
	"context"
	"reflect"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	admissionrequest "github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory creates the plugin.
var Factory = plugin.Factory{
	Name:       "ShootValidator",
	Operations: plugin.OnAnyChange,
	Validate:   plugin.ForKind(gardencore.Kind("Shoot"), validate, shootcommon.Binding),
}

func validate(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	r := &request{Attributes: a, deps: deps, now: deps.Clock.Now(), shoot: shoot, old: old}
	if a.GetOperation() == admission.Update {
		if a.GetSubresource() == shootcommon.Binding && reflect.DeepEqual(shoot.Spec.SeedName, old.Spec.SeedName) {
			return field.Forbidden(seedNamePath, "a binding must name another seed than the one that the Shoot has")
		}
		if !r.specChanges() && reflect.DeepEqual(shoot.ObjectMeta, old.ObjectMeta) {
			return nil
		}
	}
	if err := r.load(ctx); err != nil || r.profile == nil {
		return err // the API validation refuses a missing reference
	}
	return r.validate(ctx)
}

// request is one admission request with the objects that the Shoot refers to.
type request struct {
	admission.Attributes
	deps plugin.Dependencies
	now  time.Time

	// shoot is the Shoot that is written or deleted; old is the stored Shoot, which is empty for a create request.
	shoot, old *gardencore.Shoot

	profile            *gardencore.CloudProfileSpec
	project            *gardencore.Project
	seed               *gardencore.Seed             // nil if the Shoot has none
	secretBinding      *gardencore.SecretBinding    // nil if the Shoot has none
	credentialsBinding *security.CredentialsBinding // nil if the Shoot has none
}

var (
	specPath     = field.NewPath("spec")
	seedNamePath = specPath.Child("seedName")
)

// load reads the objects that the Shoot refers to. It stops if the Shoot does not refer to a CloudProfile.
func (r *request) load(ctx context.Context) (err error) {
	if r.profile, err = cloudprofile.Spec(ctx, r.deps.Reader, r.shoot); err != nil || r.profile == nil {
		return err
	}
	if err = cloudprofile.ValidateChange(ctx, r.deps.Reader, r.shoot, r.old); err != nil {
		return err
	}
	if r.seed, err = shootcommon.Seed(ctx, r.deps.Reader, r.shoot); err != nil {
		return err
	}
	if r.project, err = shootcommon.Project(ctx, r.deps.Reader, r.shoot.Namespace); err != nil {
		return err
	}
	if r.secretBinding, err = shootcommon.SecretBinding(ctx, r.deps.Reader, r.shoot); err != nil {
		return err
	}
	r.credentialsBinding, err = shootcommon.CredentialsBinding(ctx, r.deps.Reader, r.shoot)
	return err
}

// validate first runs the checks of which the first error is returned alone, then those whose errors are returned
// together.
func (r *request) validate(ctx context.Context) error {
	for _, check := range []func(context.Context) error{
		r.validateProject,
		r.validateScheduling,
		r.validateDeletion,
		r.validateHibernation,
		r.validateManagedIssuer,
		r.validateBindingMigration,
		r.validateCredentialsChange,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	errs := r.validateSeedSelector()
	errs = append(errs, r.validateRawExtensions()...)
	if r.GetOperation() != admission.Delete {
		errs = append(errs, r.validateNetworks()...)
		errs = append(errs, r.validateKubernetesVersion()...)
		errs = append(errs, r.validateRegion()...)
		errs = append(errs, r.validateAccessRestrictions()...)
		errs = append(errs, r.validateProvider()...)
		errs = append(errs, r.validateControlPlaneZones()...)
		errs = append(errs, r.validateAdmissionPlugins(ctx)...)
		errs = append(errs, r.validateLimits()...)
	}
	errs = append(errs, r.validateLiveMigration(ctx)...)
	if r.GetOperation() != admission.Delete && r.specChanges() {
		dnsErrs, err := r.validateDomain(ctx)
		if err != nil {
			return err
		}
		errs = append(errs, dnsErrs...)
	}
	return admissionrequest.Forbidden(r, errs)
}

func (r *request) specChanges() bool { return !reflect.DeepEqual(r.shoot.Spec, r.old.Spec) }
