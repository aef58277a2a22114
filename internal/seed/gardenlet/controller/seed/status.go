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

// progressPeriod is the minimum time between two reports of progress in the status, as in Gardener.
const progressPeriod = 5 * time.Second

// Descriptions of the last operation of a Seed. They are the same as in Gardener, because tools look for them.
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

// reportStart writes into the status that the operation starts, with the facts about the seed that are known by then.
func (r *Reconciler) reportStart(ctx context.Context, seed *corev1beta1.Seed, version string) error {
	description := reconciling
	if seed.DeletionTimestamp != nil {
		description = deleting
		if waits(seed.Status.LastOperation) {
			description = seed.Status.LastOperation.Description // presumably it still waits for the same objects
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

// waits reports whether the last operation is a deletion in progress.
func waits(last *corev1beta1.LastOperation) bool {
	return operation.Is(last, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing)
}

// allocatable returns the capacity minus the reserved resources.
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

// reportSuccess writes the Succeeded operation into the status. It sets the health condition from True to Progressing,
// so that the seed-care controller, which is triggered by the success, checks it anew.
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

// reportFailure writes the error into the status and returns it. It ignores that the Seed is gone.
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
