package backupentry

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// noun maps the type of an operation to its name in descriptions of the status.
var noun = map[corev1beta1.LastOperationType]string{
	"Create": "Reconciliation", "Reconcile": "Reconciliation", "Restore": "Restoration", "Migrate": "Migration", "Delete": "Deletion",
}

// start reports that an operation has begun on this seed.
func (r *Reconciler) start(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	return r.report(ctx, entry, t, corev1beta1.LastOperationStateProcessing, noun[t]+" of BackupEntry state initialized.", nil,
		func(entry *corev1beta1.BackupEntry) {
			entry.Status.SeedName = cmp.Or(entry.Status.SeedName, entry.Spec.SeedName)
		})
}

// succeed reports that an operation has succeeded. After a migration the status names no seed.
func (r *Reconciler) succeed(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	err := r.report(ctx, entry, t, corev1beta1.LastOperationStateSucceeded, noun[t]+" of BackupEntry succeeded.", nil,
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
	reason, action := corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile
	switch t {
	case corev1beta1.LastOperationTypeDelete:
		reason, action = corev1beta1.EventDeleteError, corev1beta1.EventActionDelete
	case corev1beta1.LastOperationTypeMigrate:
		action = corev1beta1.EventActionMigrate
	}
	r.Recorder.Eventf(entry, nil, corev1.EventTypeWarning, reason, action, "%s", failure.Description)
	return r.report(ctx, entry, t, corev1beta1.LastOperationStateError, failure.Description, failure)
}

func (r *Reconciler) report(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType,
	state corev1beta1.LastOperationState,
	description string, failure *corev1beta1.LastError, also ...func(*corev1beta1.BackupEntry)) error {
	reporter := extensionops.Reporter[*corev1beta1.BackupEntry]{Garden: r.GardenClient, Clock: r.Clock,
		Of: func(e *corev1beta1.BackupEntry) extensionops.Status {
			return extensionops.Status{Operation: &e.Status.LastOperation, Error: &e.Status.LastError, Observed: &e.Status.ObservedGeneration}
		}}
	return reporter.Report(ctx, entry, t, state, description, failure, also...)
}
