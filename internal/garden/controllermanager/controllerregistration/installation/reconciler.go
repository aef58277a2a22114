package installation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// Reconciler manages the ControllerInstallations of Seeds.
type Reconciler struct {
	kit.Base
}

// state is the input for the installations of one Seed. It is read-only except for the installations.
type state struct {
	seed          *corev1beta1.Seed
	registrations map[string]*corev1beta1.ControllerRegistration
	// installations are the installations in this Seed, by the name of their registration.
	installations map[string]*corev1beta1.ControllerInstallation
	// shoots are the Shoots whose control plane is in this Seed or will be there.
	shoots []corev1beta1.Shoot
	// buckets are the buckets of all Seeds: the bucket of an entry may belong to another Seed.
	buckets []corev1beta1.BackupBucket
	entries []corev1beta1.BackupEntry
}

// Reconcile creates, updates and deletes the ControllerInstallations of one Seed.
func (r *Reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	s, err := r.read(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	domains, err := r.domainsOf(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := s.wanted(s.needs(ctx, domains))
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("choosing what is installed in the Seed %q: %w", seed.Name, err)
	}
	if err := r.install(ctx, s, wanted); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.remove(ctx, s, wanted)
}

func (r *Reconciler) read(ctx context.Context, seed *corev1beta1.Seed) (*state, error) {
	var (
		registrations = &corev1beta1.ControllerRegistrationList{}
		installations = &corev1beta1.ControllerInstallationList{}
		shoots        = &corev1beta1.ShootList{}
		buckets       = &corev1beta1.BackupBucketList{}
		entries       = &corev1beta1.BackupEntryList{}
	)
	for _, list := range []client.ObjectList{registrations, shoots, buckets, entries} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what the Seed %q may need: %T: %w", seed.Name, list, err)
		}
	}
	// The cache may not contain an installation that has just been created, which would then be created twice.
	if err := r.Reader.List(ctx, installations); err != nil {
		return nil, fmt.Errorf("listing what is installed in the Seed %q: %w", seed.Name, err)
	}
	s := &state{
		seed: seed, buckets: buckets.Items,
		registrations: map[string]*corev1beta1.ControllerRegistration{},
		installations: map[string]*corev1beta1.ControllerInstallation{},
	}
	for i := range registrations.Items {
		s.registrations[registrations.Items[i].Name] = &registrations.Items[i]
	}
	for _, shoot := range shoots.Items {
		if isIn(seed, shoot.Spec.SeedName) || isIn(seed, shoot.Status.SeedName) {
			s.shoots = append(s.shoots, shoot)
		}
	}
	for _, entry := range entries.Items {
		if isIn(seed, entry.Spec.SeedName) {
			s.entries = append(s.entries, entry)
		}
	}
	return s, s.addInstallations(installations.Items)
}

func (s *state) addInstallations(all []corev1beta1.ControllerInstallation) error {
	for i := range all {
		ref := all[i].Spec.SeedRef
		if ref == nil || ref.Name != s.seed.Name {
			continue
		}
		name := all[i].Spec.RegistrationRef.Name
		if s.registrations[name] == nil {
			return fmt.Errorf("the ControllerRegistration %q of the ControllerInstallation %q is not there (yet): create it "+
				"again, or delete the installation", name, all[i].Name)
		}
		s.installations[name] = &all[i]
	}
	return nil
}

func isIn(seed *corev1beta1.Seed, name *string) bool { return ptr.Deref(name, "") == seed.Name }

// wanted returns the names of the registrations to install for the needs. Registrations whose installation has the
// condition Required stay installed even without a need.
func (s *state) wanted(needs sets.Set[string]) (sets.Set[string], error) {
	wanted, serves := sets.New[string](), map[string][]string{}
	for name, registration := range s.registrations {
		if s.isWantedByPolicy(registration) {
			wanted.Insert(name)
		}
		for _, resource := range registration.Spec.Resources {
			need := extension(resource.Kind, resource.Type)
			serves[need] = append(serves[need], name)
		}
	}
	for _, need := range sets.List(needs) {
		if len(serves[need]) == 0 {
			return nil, fmt.Errorf(
				"the extension %s is needed, but no ControllerRegistration has it: register one, or no longer use that type", need)
		}
		wanted.Insert(serves[need]...)
	}
	for name, installation := range s.installations {
		if conditions.IsTrue(installation.Status.Conditions, corev1beta1.ControllerInstallationRequired) {
			wanted.Insert(name)
		}
	}
	for name := range wanted {
		selected, err := isSelected(s.registrations[name], s.seed)
		if err != nil {
			return nil, err
		}
		if !selected {
			wanted.Delete(name)
		}
	}
	return wanted, nil
}

func (s *state) isWantedByPolicy(registration *corev1beta1.ControllerRegistration) bool {
	deployment := registration.Spec.Deployment
	if registration.DeletionTimestamp != nil || deployment == nil {
		return false
	}
	switch ptr.Deref(deployment.Policy, corev1beta1.ControllerDeploymentPolicyOnDemand) {
	case corev1beta1.ControllerDeploymentPolicyAlways:
		return s.seed.DeletionTimestamp == nil
	case corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots:
		return len(s.shoots) > 0
	}
	return false
}

// install creates and updates the wanted installations.
func (r *Reconciler) install(ctx context.Context, s *state, wanted sets.Set[string]) error {
	var errs []error
	for _, name := range sets.List(wanted) {
		// A registration that is being deleted is not installed again, so that an installation that a user deletes
		// stays deleted.
		if registration := s.registrations[name]; registration.DeletionTimestamp == nil {
			if err := r.installOne(ctx, s, registration); err != nil {
				errs = append(errs, fmt.Errorf("installing the ControllerRegistration %q in the Seed %q: %w", name, s.seed.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// remove deletes the installations that are not wanted.
func (r *Reconciler) remove(ctx context.Context, s *state, wanted sets.Set[string]) error {
	for _, name := range slices.Sorted(maps.Keys(s.installations)) {
		installation := s.installations[name]
		if wanted.Has(name) || installation.DeletionTimestamp != nil {
			continue
		}
		logf.FromContext(ctx).Info("Deleting a ControllerInstallation that is not needed any more", "controllerInstallation",
			installation.Name, "controllerRegistration", name)
		if err := r.Client.Delete(ctx, installation); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the ControllerInstallation %q that the Seed %q does not need any more: %w",
				installation.Name, s.seed.Name, err)
		}
	}
	return nil
}
