// Package shootmutator contains the admission plugin ShootMutator. It defaults fields of a Shoot, also from its
// CloudProfile and its Seed, sets the annotation with the creator, and adds the gardenlet tasks that a change needs.
//
// It refuses a request only if a default cannot be determined; ShootValidator validates the result.
package shootmutator

import (
	"context"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Factory creates the plugin.
var Factory = plugin.Factory{
	Name:       "ShootMutator",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admit, request.AnySubresource),
}

// admit treats subresources that carry a whole Shoot as the Shoot itself.
func admit(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	creating := a.GetOperation() == admission.Create
	if creating {
		if err := validateOneProfileField(shoot); err != nil {
			return err
		}
	}
	profile, err := cloudprofile.Spec(ctx, deps.Reader, shoot)
	if err != nil {
		return err
	}
	if profile == nil {
		return nil // the API validation refuses the missing reference
	}
	seed, err := shootcommon.Seed(ctx, deps.Reader, shoot)
	if err != nil {
		return err
	}

	if creating {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.GardenCreatedBy, a.GetUserInfo().GetName())
		addTasks(shoot, deployAll...)
		defaultAutoRotation(&shoot.Spec)
	} else {
		addTasks(shoot, tasksForUpdate(shoot, old)...)
		requestRetryInMaintenance(shoot, old)
	}
	defaultNetworks(shoot, seed)
	return request.Forbidden(a, defaultFromProfile(shoot, old, profile, deps.Clock.Now()))
}

// validateOneProfileField refuses a new Shoot with both fields. It runs in the mutator because the registry
// synchronizes the two fields before validating plugins run.
func validateOneProfileField(shoot *gardencore.Shoot) error {
	if shoot.Spec.CloudProfile != nil && ptr.Deref(shoot.Spec.CloudProfileName, "") != "" {
		return field.Forbidden(field.NewPath("spec", "cloudProfileName"),
			"a new Shoot may have only one of spec.cloudProfileName and spec.cloudProfile")
	}
	return nil
}

// defaultAutoRotation sets the period in which the key that encrypts secrets in etcd is rotated in maintenance, unless
// the user has set or disabled it.
func defaultAutoRotation(spec *gardencore.ShootSpec) {
	maintenance := orNew(&spec.Maintenance)
	credentials := orNew(&orNew(&maintenance.AutoRotation).Credentials)
	if credentials.ETCDEncryptionKey == nil {
		credentials.ETCDEncryptionKey = &gardencore.MaintenanceRotationConfig{
			RotationPeriod: &metav1.Duration{Duration: v1beta1constants.ETCDEncryptionKeyAutoRotationPeriod}}
	}
}

// orNew returns *p, which it sets to a new T if it is nil.
func orNew[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// defaultFromProfile completes the Kubernetes versions, and the architectures and images of the worker pools.
func defaultFromProfile(shoot, old *gardencore.Shoot, profile *gardencore.CloudProfileSpec, now time.Time) field.ErrorList {
	var errs field.ErrorList
	complete := func(version *string, path *field.Path) bool {
		completed, err := cloudprofile.CompleteKubernetesVersion(profile.Kubernetes.Versions, *version, now, path)
		if err != nil {
			errs = append(errs, err)
			return false
		}
		*version = completed
		return true
	}
	complete(&shoot.Spec.Kubernetes.Version, field.NewPath("spec", "kubernetes", "version"))

	workers, workersPath := shoot.Spec.Provider.Workers, field.NewPath("spec", "provider", "workers")
	for i := range workers {
		if k := workers[i].Kubernetes; k != nil && k.Version != nil && !complete(k.Version, workersPath.Index(i).Child("kubernetes", "version")) {
			break
		}
	}
	for i := range workers {
		worker := &workers[i]
		if worker.Machine.Architecture == nil {
			worker.Machine.Architecture = ptr.To(cloudprofile.DefaultArchitecture(profile, worker.Machine.Type))
		}
		if shoot.DeletionTimestamp != nil {
			continue
		}
		image, err := cloudprofile.CompleteImage(profile, worker, validation.WorkerNamed(old.Spec.Provider.Workers, worker.Name),
			now, workersPath.Index(i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		worker.Machine.Image = image
	}
	return errs
}
