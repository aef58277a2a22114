package seed

import (
	"context"
	"errors"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// progressPeriod is the time after which of work the status says how far it is; Gardener's.
const progressPeriod = 5 * time.Second

// What a Seed's last operation says; Gardener's words, which tools look for.
const (
	reconciling = "Reconciliation of Seed cluster initialized."
	reconciled  = "Seed cluster has been successfully reconciled."
	deleting    = "Deletion of Seed cluster in progress."
)

func operationType(seed *corev1beta1.Seed) corev1beta1.LastOperationType {
	if seed.DeletionTimestamp != nil {
		return corev1beta1.LastOperationTypeDelete
	}
	return corev1beta1.LastOperationTypeReconcile
}

func (r *Reconciler) lastOperation(seed *corev1beta1.Seed, state corev1beta1.LastOperationState, progress int32,
	description string) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{
		Type: operationType(seed), State: state, Progress: progress, Description: description,
		LastUpdateTime: metav1.NewTime(r.Clock.Now().UTC()),
	}
}

// reportStart says that the work begins, and what is known of the seed without it.
func (r *Reconciler) reportStart(ctx context.Context, seed *corev1beta1.Seed, version string) error {
	description := reconciling
	if seed.DeletionTimestamp != nil {
		description = deleting
		if waits(seed.Status.LastOperation) {
			description = seed.Status.LastOperation.Description // still, for all that is known
		}
	}
	return operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		status := &seed.Status
		status.LastOperation = r.lastOperation(seed, corev1beta1.LastOperationStateProcessing, 0, description)
		status.Gardener = r.Identity
		status.ObservedGeneration = seed.Generation
		status.KubernetesVersion = &version
		if r.CertificateExpiration != nil {
			if until := r.CertificateExpiration(); !until.IsZero() {
				status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: until}
			}
		}
		if r.Resources != nil && len(r.Resources.Capacity) > 0 {
			status.Capacity, status.Allocatable = r.Resources.Capacity.DeepCopy(), r.allocatable()
		}
	})
}

// waits says whether a last operation is a deletion that waits.
func waits(last *corev1beta1.LastOperation) bool {
	return operation.Is(last, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing)
}

// allocatable is the capacity without what is reserved.
func (r *Reconciler) allocatable() corev1.ResourceList {
	all := r.Resources.Capacity.DeepCopy()
	for name, quantity := range all {
		if reserved, ok := r.Resources.Reserved[name]; ok {
			quantity.Sub(reserved)
			all[name] = quantity
		}
	}
	return all
}

func (r *Reconciler) reportProgress(ctx context.Context, seed *corev1beta1.Seed, description string, percent int32) error {
	if last := seed.Status.LastOperation; last != nil && r.Clock.Since(last.LastUpdateTime.Time) < progressPeriod {
		return nil
	}
	return operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		seed.Status.LastOperation = r.lastOperation(seed, corev1beta1.LastOperationStateProcessing, percent, description)
	})
}

// reportSuccess says that all is done. Whether the seed is well after that has to be looked at once more, by the
// controller seed-care, which waits for this.
func (r *Reconciler) reportSuccess(ctx context.Context, seed *corev1beta1.Seed) error {
	err := conditions.PatchSeed(ctx, r.GardenClient, seed, func(all []conditions.Condition) ([]conditions.Condition, bool) {
		health := conditions.Find(all, corev1beta1.SeedSystemComponentsHealthy)
		if health.Status != corev1beta1.ConditionTrue {
			return all, false
		}
		health.Status = corev1beta1.ConditionProgressing
		return conditions.Set(all, health, r.Clock)
	})
	if err != nil {
		return err
	}
	return operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		seed.Status.LastOperation = r.lastOperation(seed, corev1beta1.LastOperationStateSucceeded, 100, reconciled)
	})
}

// reportFailure says what went wrong, and returns it. It says no more if the Seed has gone.
func (r *Reconciler) reportFailure(ctx context.Context, seed *corev1beta1.Seed, cause error) error {
	err := operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		var progress int32
		if last := seed.Status.LastOperation; last != nil && last.Type == operationType(seed) {
			progress = last.Progress
		}
		seed.Status.Gardener = r.Identity
		seed.Status.LastOperation = r.lastOperation(seed, corev1beta1.LastOperationStateError, progress,
			cause.Error()+" Operation will be retried.")
	})
	return errors.Join(cause, client.IgnoreNotFound(err))
}
