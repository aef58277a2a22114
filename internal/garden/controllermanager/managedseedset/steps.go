package managedseedset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatuslabel"
)

// advance performs the next step for a replica, and returns whether the set must wait for the replica.
func (s *step) advance(ctx context.Context, one *replica) (waits bool, err error) {
	name, status := one.shoot.Name, one.status()
	switch {
	case status == shootDeleteFailed:
		return true, s.retry(ctx, one, retryDeletion)
	case status == shootDeleting:
		return true, s.wait(name, seedmanagementv1alpha1.ShootDeletingReason, "WaitingForShootDeleted", "Waiting for the Shoot %s to be gone")
	case status == managedSeedDeleting:
		return true, s.wait(name, seedmanagementv1alpha1.ManagedSeedDeletingReason, "WaitingForManagedSeedDeleted",
			"Waiting for the ManagedSeed %s to be gone")
	case status == shootReconciled && s.scalingIn && one.mayGo():
		return true, s.deleteShoot(ctx, one)
	case s.scalingIn:
		return false, nil
	case status == shootReconcileFailed:
		return true, s.retry(ctx, one, retryReconciliation)
	case status == shootReconciling:
		return true, s.wait(name, seedmanagementv1alpha1.ShootReconcilingReason, "WaitingForShootReconciled",
			"Waiting for the Shoot %s to be reconciled")
	case status == shootReconciled:
		return true, s.createManagedSeed(ctx, name)
	case status == managedSeedPreparing:
		return true, s.wait(name, seedmanagementv1alpha1.ManagedSeedPreparingReason, "WaitingForManagedSeedRegistered",
			"Waiting for the ManagedSeed %s to be registered")
	case !one.seedReady:
		return true, s.wait(name, seedmanagementv1alpha1.SeedNotReadyReason, "WaitingForSeedReady", "Waiting for the Seed %s to be ready")
	case health(one.shoot) != shootstatuslabel.Healthy:
		return true, s.wait(name, seedmanagementv1alpha1.ShootNotHealthyReason, "WaitingForShootHealthy",
			"Waiting for the Shoot %s to be healthy")
	}
	return false, nil
}

// wait records in the status, and in an event, what the set waits for. The reasons of events are those of Gardener.
func (s *step) wait(name string, reason seedmanagementv1alpha1.PendingReplicaReason, event, message string) error {
	action := corev1beta1.EventActionReconcile
	if reason == seedmanagementv1alpha1.ShootDeletingReason || reason == seedmanagementv1alpha1.ManagedSeedDeletingReason {
		action = corev1beta1.EventActionDelete
	}
	s.recordEvent(event, action, message, name)
	s.setPending(name, reason, s.retries(name, reason))
	return nil
}

// retrying has the reasons and texts for the retries of an operation.
type retrying struct {
	doing, failed      seedmanagementv1alpha1.PendingReplicaReason
	again, never, what string
	action             string
}

var (
	retryReconciliation = retrying{
		doing: seedmanagementv1alpha1.ShootReconcilingReason, failed: seedmanagementv1alpha1.ShootReconcileFailedReason,
		again: "RetryingShootReconciliation", never: "NotRetryingShootReconciliation", what: "reconciliation",
		action: corev1beta1.EventActionReconcile,
	}
	retryDeletion = retrying{
		doing: seedmanagementv1alpha1.ShootDeletingReason, failed: seedmanagementv1alpha1.ShootDeleteFailedReason,
		again: "RetryingShootDeletion", never: "NotRetryingShootDeletion", what: "deletion", action: corev1beta1.EventActionDelete,
	}
)

// retry retries the failed operation of a Shoot up to the maximum number of retries.
func (s *step) retry(ctx context.Context, one *replica, how retrying) error {
	name := one.shoot.Name
	if one.shoot.Annotations[constants.GardenerOperation] == constants.ShootOperationRetry {
		return nil // The gardenlet has not seen the annotation yet.
	}
	retries, limit := ptr.Deref(cmp.Or(s.retries(name, how.doing), s.retries(name, how.failed)), 0),
		cmp.Or(s.MaxShootRetries, DefaultMaxShootRetries)
	if retries >= limit {
		s.recordEvent(how.never, how.action,
			"The "+how.what+" of the Shoot %s has failed too often and is not tried again: repair it, and ask for it by annotation", name)
		s.setPending(name, how.failed, &retries)
		return nil
	}
	s.recordEvent(how.again, how.action, "Trying the "+how.what+" of the Shoot %s again", name)
	if err := s.Annotate(ctx, one.shoot,
		map[string]string{constants.GardenerOperation: constants.ShootOperationRetry}); err != nil {
		return fmt.Errorf("asking for the %s of the Shoot %s to be tried again: %w", how.what, name, err)
	}
	s.setPending(name, how.doing, ptr.To(retries+1))
	return nil
}

// create creates the Shoot of a new replica.
func (s *step) create(ctx context.Context, replicas []*replica) error {
	next := s.status.NextReplicaNumber
	for _, one := range replicas {
		next = max(next, ordinal(s.set, one.shoot.Name)+1)
	}
	name := fmt.Sprintf("%s-%d", s.set.Name, next)
	s.recordEvent("CreatingShoot", corev1beta1.EventActionReconcile, "Creating the Shoot %s", name)
	err := s.Client.Create(ctx, newShoot(s.set, name))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the Shoot %s: %w", name, err)
	}
	s.status.NextReplicaNumber = next + 1
	if err != nil {
		return fmt.Errorf("there is a Shoot %s already that the selector of the set does not select: the next number is tried", name)
	}
	s.status.Replicas++
	s.setPending(name, seedmanagementv1alpha1.ShootReconcilingReason, nil)
	return nil
}

func (s *step) createManagedSeed(ctx context.Context, name string) error {
	managedSeed, err := newManagedSeed(s.set, name)
	if err != nil {
		return err
	}
	s.recordEvent("CreatingManagedSeed", corev1beta1.EventActionReconcile, "Creating the ManagedSeed %s", name)
	if err := s.Client.Create(ctx, managedSeed); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating the ManagedSeed %s: %w", name, err)
	}
	s.setPending(name, seedmanagementv1alpha1.ManagedSeedPreparingReason, nil)
	return nil
}

// remove removes the first replica in the order of lessWorthy: its ManagedSeed, or its Shoot if there is no
// ManagedSeed.
func (s *step) remove(ctx context.Context, replicas []*replica) error {
	candidates := slices.DeleteFunc(slices.Clone(replicas), func(one *replica) bool { return !one.mayGo() })
	if len(candidates) == 0 {
		return errors.New("there are too many replicas, but none can be removed: each has Shoots scheduled to it, or is protected by annotation")
	}
	one := slices.MinFunc(candidates, lessWorthy(s.set))
	if one.isReady() {
		s.status.ReadyReplicas--
	}
	if one.managedSeed == nil {
		return s.deleteShoot(ctx, one)
	}
	name := one.managedSeed.Name
	s.recordEvent("DeletingManagedSeed", corev1beta1.EventActionDelete, "Deleting the ManagedSeed %s", name)
	if err := s.Client.Delete(ctx, one.managedSeed); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ManagedSeed %s: %w", name, err)
	}
	s.setPending(name, seedmanagementv1alpha1.ManagedSeedDeletingReason, nil)
	return nil
}

func (s *step) deleteShoot(ctx context.Context, one *replica) error {
	s.recordEvent("DeletingShoot", corev1beta1.EventActionDelete, "Deleting the Shoot %s", one.shoot.Name)
	if err := s.DeleteConfirmed(ctx, one.shoot); err != nil {
		return err
	}
	s.setPending(one.shoot.Name, seedmanagementv1alpha1.ShootDeletingReason, nil)
	return nil
}

// retries returns the number of retries of the pending replica, and nil if another replica or another reason is
// pending.
func (s *step) retries(name string, reason seedmanagementv1alpha1.PendingReplicaReason) *int32 {
	if pending := s.status.PendingReplica; pending != nil && pending.Name == name && pending.Reason == reason {
		return pending.Retries
	}
	return nil
}

func (s *step) setPending(name string, reason seedmanagementv1alpha1.PendingReplicaReason, retries *int32) {
	pending := s.status.PendingReplica
	if pending != nil && pending.Name == name && pending.Reason == reason && ptr.Equal(pending.Retries, retries) {
		return
	}
	s.status.PendingReplica = &seedmanagementv1alpha1.PendingReplica{
		Name: name, Reason: reason, Since: metav1.NewTime(s.Clock.Now()), Retries: retries}
}

func (s *step) recordEvent(reason, action, message, name string) {
	s.Recorder.Eventf(s.set, nil, corev1.EventTypeNormal, reason, action, message, s.set.Namespace+"/"+name)
}
