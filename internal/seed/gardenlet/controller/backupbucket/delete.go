package backupbucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// delete deletes everything of a bucket step by step, and returns the delay before the next step.
func (r *Reconciler) delete(ctx context.Context, bucket *corev1beta1.BackupBucket) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(bucket, corev1beta1.GardenerName) {
		return 0, nil
	}
	if used, err := r.inUse(ctx, bucket); used || err != nil {
		return requeueDeletion, err
	}
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateProcessing, "Deletion of BackupBucket state initialized."); err != nil {
		return 0, err
	}
	if err := r.deleteGenerated(ctx, bucket); err != nil {
		return 0, err
	}
	credentials, err := r.extensions().ReadCredentials(ctx, bucket.Spec.CredentialsRef)
	if err != nil {
		return 0, r.failCredentials(ctx, bucket, err)
	}
	if _, _, err := r.extensions().CopyCredentials(ctx, secretName(bucket), credentials, bucket); err != nil {
		return 0, err
	}
	extension := emptyExtension(bucket)
	gone, err := r.extensions().Delete(ctx, bucket, extension)
	if err != nil {
		return 0, err
	}
	if failure := extensionops.DeletionFailure(extension); !gone && failure != nil {
		return 0, cmp.Or(r.fail(ctx, bucket, failure), errors.New(failure.Description))
	}
	if !gone {
		return requeueDeletion, nil
	}
	if err := r.extensions().RemoveCredentials(ctx, secretName(bucket)); err != nil {
		return 0, err
	}
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateSucceeded, "Backup Bucket has been successfully deleted."); err != nil {
		return 0, err
	}
	if err := r.releaseCredentials(ctx, bucket, credentials); err != nil {
		return 0, err
	}
	return 0, r.deleted.RemoveFinalizers(ctx, r.GardenClient, bucket, corev1beta1.GardenerName)
}

// releaseCredentials removes the finalizers from the Secret with the credentials of a deleted bucket, unless another bucket
// has the same credentials. It lists live, and ignores buckets that are as far as this one, so that one of several buckets
// that are deleted at the same time removes the finalizers.
func (r *Reconciler) releaseCredentials(ctx context.Context, bucket *corev1beta1.BackupBucket, credentials client.Object) error {
	secret, ok := credentials.(*corev1.Secret)
	if !ok {
		return nil
	}
	buckets := &corev1beta1.BackupBucketList{}
	if err := r.GardenReader.List(ctx, buckets); err != nil {
		return fmt.Errorf("listing the BackupBuckets that may use Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	for i := range buckets.Items {
		other := &buckets.Items[i]
		if other.Name != bucket.Name && equality.Semantic.DeepEqual(other.Spec.CredentialsRef, bucket.Spec.CredentialsRef) &&
			!operation.Is(other.Status.LastOperation, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateSucceeded) {
			return nil
		}
	}
	return operation.RemoveFinalizers(ctx, r.GardenClient, secret, finalizer, corev1beta1.ExternalGardenerName)
}

// inUse reports whether BackupEntries use the bucket, and writes their names into the status and an event. The garden
// refuses to delete a used bucket, but an entry may be created at the same time.
func (r *Reconciler) inUse(ctx context.Context, bucket *corev1beta1.BackupBucket) (bool, error) {
	entries := &corev1beta1.BackupEntryList{}
	if err := r.GardenClient.List(ctx, entries); err != nil {
		return false, fmt.Errorf("listing the BackupEntries that may use BackupBucket %s: %w", bucket.Name, err)
	}
	var users []string
	for i := range entries.Items {
		if entries.Items[i].Spec.BucketName == bucket.Name {
			users = append(users, client.ObjectKeyFromObject(&entries.Items[i]).String())
		}
	}
	if len(users) == 0 {
		return false, nil
	}
	slices.Sort(users)
	message := "It is deleted once no BackupEntry uses it any more: " + strings.Join(users[:min(len(users), 10)], ", ")
	r.Recorder.Eventf(bucket, nil, corev1.EventTypeWarning, constants.EventResourceReferenced, corev1beta1.EventActionDelete, "%s", message)
	return true, r.report(ctx, bucket, corev1beta1.LastOperationStatePending, message)
}
