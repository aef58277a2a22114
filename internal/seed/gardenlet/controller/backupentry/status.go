package backupentry

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// noun maps the type of an operation to its name in descriptions of the status.
var noun = map[corev1beta1.LastOperationType]string{
	"Create": "Reconciliation", "Reconcile": "Reconciliation", "Restore": "Restoration", "Migrate": "Migration", "Delete": "Deletion",
}

// start reports that an operation has begun on this seed.
func (r *Reconciler) start(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	return r.report(ctx, entry, t, corev1beta1.LastOperationStateProcessing, noun[t]+" of BackupEntry state initialized.",
		func(entry *corev1beta1.BackupEntry) {
			entry.Status.SeedName = cmp.Or(entry.Status.SeedName, entry.Spec.SeedName)
		})
}

// succeed reports that an operation has succeeded. After a migration the status names no seed.
func (r *Reconciler) succeed(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	err := r.report(ctx, entry, t, corev1beta1.LastOperationStateSucceeded, noun[t]+" of BackupEntry succeeded.",
		func(entry *corev1beta1.BackupEntry) {
			if t == corev1beta1.LastOperationTypeMigrate {
				entry.Status.SeedName = nil
			}
		})
	if err != nil || t != corev1beta1.LastOperationTypeRestore {
		return err
	}
	return operation.Patch(ctx, r.GardenClient, entry, func(entry *corev1beta1.BackupEntry) {
		delete(entry.Annotations, constants.GardenerOperation)
	})
}

// fail reports a failure of the extension or of the bucket in an event and in the status.
func (r *Reconciler) fail(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType,
	failure *corev1beta1.LastError) error {
	return r.reporter().Fail(ctx, entry, t, failure.Description, failure)
}

func (r *Reconciler) report(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType,
	state corev1beta1.LastOperationState, description string, also ...func(*corev1beta1.BackupEntry)) error {
	return r.reporter().Report(ctx, entry, t, state, description, also...)
}

func (r *Reconciler) reporter() extensionops.Reporter[*corev1beta1.BackupEntry] {
	return extensionops.Reporter[*corev1beta1.BackupEntry]{Base: &r.Base, Of: func(e *corev1beta1.BackupEntry) extensionops.Status {
		return extensionops.Status{Operation: &e.Status.LastOperation, Error: &e.Status.LastError, Observed: &e.Status.ObservedGeneration}
	}}
}
