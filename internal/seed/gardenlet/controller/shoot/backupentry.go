package shoot

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// sourcePrefix is the prefix of the name of a source entry: a BackupEntry for the backups in another seed's bucket,
// from which they are copied.
const sourcePrefix = constants.BackupSourcePrefix + "-"

// entryNameSeparator separates the technical ID and the UID of a Shoot in the name of its BackupEntry.
const entryNameSeparator = "--"

// backsUp reports whether the seed has a bucket for backups.
func (b *botanist) backsUp() bool { return b.seed != nil && b.seed.Spec.Backup != nil }

// entryKey returns the key of the Shoot's BackupEntry, which moves with the Shoot between seeds and keeps its name.
func (b *botanist) entryKey() client.ObjectKey {
	return client.ObjectKey{Namespace: b.shoot.Namespace, Name: b.namespace() + entryNameSeparator + string(b.shoot.Status.UID)}
}

func (b *botanist) sourceKey() client.ObjectKey {
	key := b.entryKey()
	key.Name = sourcePrefix + key.Name
	return key
}

// bucket returns the name of the seed's own BackupBucket.
func (b *botanist) bucket() string { return string(b.seed.UID) }

// readEntry reads a BackupEntry, nil if there is none.
func (b *botanist) readEntry(ctx context.Context, key client.ObjectKey) (*corev1beta1.BackupEntry, error) {
	entry := &corev1beta1.BackupEntry{}
	if err := b.GardenReader.Get(ctx, key, entry); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading BackupEntry %s: %w", key, err)
	}
	return entry, nil
}

// deploySourceEntry creates the source entry for a restoration, which refers to the bucket of the previous seed. The
// garden requires the source entry to be like the Shoot's own entry, so it is created before the latter gets the bucket
// of this seed.
func (b *botanist) deploySourceEntry(ctx context.Context) error {
	entry, err := b.readEntry(ctx, b.entryKey())
	if err != nil || entry == nil || entry.Spec.BucketName == b.bucket() {
		return err
	}
	return b.writeEntry(ctx, b.sourceKey(), entry.Spec.BucketName, constants.GardenerOperationReconcile)
}

// deployEntry ensures the Shoot's BackupEntry, and requests its reconciliation or restoration.
func (b *botanist) deployEntry(ctx context.Context) error {
	bucket := &corev1beta1.BackupBucket{}
	err := b.GardenReader.Get(ctx, client.ObjectKey{Name: b.bucket()}, bucket)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading BackupBucket %s of Seed %s: %w", b.bucket(), b.seed.Name, err)
	case err != nil || bucket.Status.LastOperation == nil:
		return flow.Pending("BackupBucket %s of Seed %s is not there yet", b.bucket(), b.seed.Name)
	}
	requested := constants.GardenerOperationReconcile
	entry, err := b.readEntry(ctx, b.entryKey())
	if err != nil {
		return err
	}
	if entry != nil && b.restores() {
		takenOver, err := b.takeOverEntry(ctx, entry)
		if err != nil {
			return err
		}
		if takenOver || isBetweenSeeds(entry.Status.LastOperation) {
			requested = constants.GardenerOperationRestore
		}
	}
	return b.writeEntry(ctx, b.entryKey(), b.bucket(), requested)
}

// takeOverEntry removes the previous seed from the status of an entry, and reports whether it did. That seed has
// reported that the migration of the Shoot succeeded, so its gardenlet will not release the entry.
func (b *botanist) takeOverEntry(ctx context.Context, entry *corev1beta1.BackupEntry) (bool, error) {
	if seed := entry.Status.SeedName; seed == nil || *seed == b.SeedName {
		return false, nil
	}
	return true, operation.PatchStatus(ctx, b.GardenClient, entry, func(entry *corev1beta1.BackupEntry) { entry.Status.SeedName = nil })
}

// writeEntry ensures a BackupEntry, and requests an operation on it once per operation on the Shoot. The garbage
// collector deletes the entry with the Shoot.
func (b *botanist) writeEntry(ctx context.Context, key client.ObjectKey, bucket, requested string) error {
	owner := metav1.NewControllerRef(b.shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	owner.BlockOwnerDeletion = ptr.To(false)
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return ensure(ctx, b.GardenClient, b.GardenReader, entry, func(entry *corev1beta1.BackupEntry) error {
		spec := entry.Spec.DeepCopy()
		spec.BucketName, spec.SeedName = bucket, ptr.To(b.SeedName)
		if b.requestedBefore(entry) || !equality.Semantic.DeepEqual(*spec, entry.Spec) {
			b.requestOperation(entry, requested)
		}
		if purpose := b.shoot.Spec.Purpose; purpose != nil {
			annotate(entry, constants.ShootPurpose, string(*purpose))
		}
		entry.OwnerReferences = []metav1.OwnerReference{*owner}
		entry.Spec = *spec
		return nil
	})
}

// entryReady returns a step that waits until the last requested operation on a BackupEntry is done.
func (b *botanist) entryReady(key func() client.ObjectKey) func(context.Context) error {
	return func(ctx context.Context) error {
		entry, err := b.readEntry(ctx, key())
		if err != nil || entry == nil { // there is no source entry if there is nothing to copy
			return err
		}
		return entryDone(entry)
	}
}

func entryDone(entry *corev1beta1.BackupEntry) error {
	status, key := entry.Status, client.ObjectKeyFromObject(entry)
	last := status.LastOperation
	switch {
	case last == nil || status.ObservedGeneration != entry.Generation:
		return flow.Pending("BackupEntry %s is not up to date", key)
	case status.LastError != nil:
		return flow.WithCodes(fmt.Errorf("BackupEntry %s: %s", key, status.LastError.Description), status.LastError.Codes...)
	case last.State != corev1beta1.LastOperationStateSucceeded || operation.RequestedOperation(entry) != "":
		return flow.Pending("BackupEntry %s: %s", key, last.Description)
	}
	return nil
}

// destroySourceEntry deletes the source entry. Afterwards nothing in this seed refers to the other seed's bucket.
func (b *botanist) destroySourceEntry(ctx context.Context) error {
	entry, err := b.readEntry(ctx, b.sourceKey())
	if err != nil || entry == nil {
		return err
	}
	if err := operation.Patch(ctx, b.GardenClient, entry, func(entry *corev1beta1.BackupEntry) {
		metav1.SetMetaDataAnnotation(&entry.ObjectMeta, corev1beta1.BackupEntryForceDeletion, "true")
	}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return remove(ctx, b.GardenClient, b.GardenReader, entry)
}

// migrateEntry assigns the Shoot's BackupEntry to the other seed, and waits until this seed has released it. It removes
// the request for a restoration: the other seed would begin it before its own gardenlet has the Shoot.
func (b *botanist) migrateEntry(ctx context.Context) error {
	entry, err := b.readEntry(ctx, b.entryKey())
	if err != nil || entry == nil || entry.DeletionTimestamp != nil {
		return err
	}
	if to := b.shoot.Spec.SeedName; !ptr.Equal(entry.Spec.SeedName, to) {
		if err := operation.Patch(ctx, b.GardenClient, entry, func(entry *corev1beta1.BackupEntry) {
			entry.Spec.SeedName = to
			delete(entry.Annotations, constants.GardenerOperation)
		}); err != nil {
			return err
		}
	}
	if ptr.Deref(entry.Status.SeedName, "") != b.SeedName { // it has left this seed, or has never been here
		return nil
	}
	if err := entryDone(entry); err != nil {
		return err
	}
	// The operation that is done is an earlier one, not the migration.
	return flow.Pending("BackupEntry %s has not left this seed yet", client.ObjectKeyFromObject(entry))
}
