package backupentry

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// migrate releases an entry that moves to another seed step by step, and returns the delay before the next step.
func (r *Reconciler) migrate(ctx context.Context, entry *corev1beta1.BackupEntry) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(entry, corev1beta1.GardenerName) {
		return 0, nil
	}
	if err := r.start(ctx, entry, corev1beta1.LastOperationTypeMigrate); err != nil {
		return 0, err
	}
	extension := emptyExtension(entry)
	err := r.SeedClient.Get(ctx, client.ObjectKeyFromObject(extension), extension)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("reading the extension's BackupEntry %s: %w", entry.Name, err)
	}
	if err == nil {
		return requeueExtension, r.release(ctx, entry, extension)
	}
	if err := r.extensions().RemoveCredentials(ctx, secretName(entry)); err != nil {
		return 0, err
	}
	return 0, r.succeed(ctx, entry, corev1beta1.LastOperationTypeMigrate)
}

// release takes the next step to make the extension release an entry: it requests the migration, then deletes the
// extension resource. The backups in the bucket stay.
func (r *Reconciler) release(ctx context.Context, entry *corev1beta1.BackupEntry, extension *extensionsv1alpha1.BackupEntry) error {
	last := extension.Status.LastOperation
	migrating := last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
	switch {
	case migrating && last.State == corev1beta1.LastOperationStateSucceeded:
		_, err := r.extensions().Delete(ctx, entry, extension)
		return err
	case (migrating || extension.DeletionTimestamp != nil) && operation.Failing(last):
		if err := r.fail(ctx, entry, corev1beta1.LastOperationTypeMigrate, extensionops.Failure(extension)); err != nil {
			return err
		}
	case !migrating && extension.DeletionTimestamp == nil && operation.RequestedOperation(extension) != constants.GardenerOperationMigrate:
		return r.extensions().RequestOperation(ctx, entry, extension, constants.GardenerOperationMigrate, nil)
	}
	return r.extensions().SyncInjectionAnnotations(ctx, entry, extension)
}

// requestOperation requests an operation of the extension. For a restoration it first writes the state from the
// ShootState into the extension resource.
func (r *Reconciler) requestOperation(ctx context.Context, entry *corev1beta1.BackupEntry, extension *extensionsv1alpha1.BackupEntry,
	t corev1beta1.LastOperationType, spec extensionsv1alpha1.BackupEntrySpec) error {
	specify := func() { extension.Spec = spec }
	if t != corev1beta1.LastOperationTypeRestore {
		return r.extensions().RequestOperation(ctx, entry, extension, constants.GardenerOperationReconcile, specify)
	}
	state := &corev1beta1.ShootState{}
	key := client.ObjectKey{Namespace: entry.Namespace, Name: shootOf(entry)}
	if err := r.GardenReader.Get(ctx, key, state); err != nil {
		return fmt.Errorf("reading ShootState %s, from which BackupEntry %s is restored: %w", key, entry.Name, err)
	}
	if err := r.extensions().RequestOperation(ctx, entry, extension, constants.GardenerOperationWaitForState, specify); err != nil {
		return err
	}
	if err := extensionops.RestoreState(ctx, r.SeedClient, extensionsv1alpha1.BackupEntryResource, extension, state); err != nil {
		return err
	}
	return r.extensions().RequestOperation(ctx, entry, extension, constants.GardenerOperationRestore, nil)
}

// waitsForState reports whether a restoration was interrupted before it was requested from the extension.
func waitsForState(extension *extensionsv1alpha1.BackupEntry) bool {
	return operation.RequestedOperation(extension) == constants.GardenerOperationWaitForState
}

func shootOf(entry *corev1beta1.BackupEntry) string {
	for _, owner := range entry.OwnerReferences {
		if owner.Kind == "Shoot" {
			return owner.Name
		}
	}
	return ""
}
