package backupentry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// delete deletes everything of an entry step by step, and returns the delay before the next step.
func (r *Reconciler) delete(ctx context.Context, entry *corev1beta1.BackupEntry) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(entry, corev1beta1.GardenerName) {
		return 0, nil
	}
	t := operation.DueOperationType(entry, entry.Status.LastOperation)
	if wait := r.grace(entry); wait > 0 {
		scheduled := fmt.Sprintf("Deletion of backup entry is scheduled for %s", landscapeclock.At(r.Clock, entry.DeletionTimestamp.Time).Add(r.DeletionGracePeriod))
		if last := entry.Status.LastOperation; operation.Is(last, t, corev1beta1.LastOperationStatePending) && last.Description == scheduled {
			return wait, nil
		}
		return wait, r.report(ctx, entry, t, corev1beta1.LastOperationStatePending, scheduled)
	}
	if err := r.start(ctx, entry, t); err != nil {
		return 0, err
	}
	if bucket, _, _, err := r.prepare(ctx, entry, t); err != nil || bucket == nil {
		return 0, err
	}
	extension := emptyExtension(entry)
	gone, err := r.extensions().Delete(ctx, entry, extension)
	if err != nil {
		return 0, err
	}
	if failure := extensionops.DeletionFailure(extension); !gone && failure != nil {
		return 0, errors.Join(r.fail(ctx, entry, t, failure), errors.New(failure.Description))
	}
	if !gone {
		return requeueExtension, nil
	}
	if err := r.extensions().RemoveCredentials(ctx, secretName(entry)); err != nil {
		return 0, err
	}
	if err := r.succeed(ctx, entry, t); err != nil {
		return 0, err
	}
	return 0, r.deleted.RemoveFinalizers(ctx, r.GardenClient, entry, corev1beta1.GardenerName)
}

// grace returns the rest of the deletion grace period of an entry. It is not positive if the entry may be deleted.
func (r *Reconciler) grace(entry *corev1beta1.BackupEntry) time.Duration {
	if force, err := strconv.ParseBool(entry.Annotations[corev1beta1.BackupEntryForceDeletion]); err == nil && force {
		return 0
	}
	purpose := corev1beta1.ShootPurpose(entry.Annotations[constants.ShootPurpose])
	purposes := r.DeletionGracePeriodShootPurposes
	if len(purposes) > 0 && purpose != "" && !slices.Contains(purposes, purpose) {
		return 0
	}
	return landscapeclock.At(r.Clock, entry.DeletionTimestamp.Time).Add(r.DeletionGracePeriod).Sub(r.Clock.Now())
}
