package backupbucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
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
		return r.requeue(), err
	}
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateProcessing, "Deletion of BackupBucket state initialized.", nil); err != nil {
		return 0, err
	}
	if err := r.deleteGenerated(ctx, bucket); err != nil {
		return 0, err
	}
	credentials, err := r.copier().Read(ctx, bucket.Spec.CredentialsRef)
	if err != nil {
		return 0, r.fail(ctx, bucket, &corev1beta1.LastError{Description: "Failed to get backup credentials: " + err.Error()}, err)
	}
	if _, _, err := r.copier().Copy(ctx, secretName(bucket), credentials, bucket); err != nil {
		return 0, err
	}
	extension := emptyExtension(bucket)
	if gone, err := r.extensions().Delete(ctx, bucket, extension); err != nil {
		return 0, err
	} else if !gone {
		return r.stays(ctx, bucket, extension.Status.LastOperation, extensionops.Failure(extension))
	}
	if err := r.copier().Remove(ctx, secretName(bucket)); err != nil {
		return 0, err
	}
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateSucceeded, "Backup Bucket has been successfully deleted.", nil); err != nil {
		return 0, err
	}
	if secret, ok := credentials.(*corev1.Secret); ok {
		if err := operation.RemoveFinalizers(ctx, r.GardenClient, secret, finalizer, corev1beta1.ExternalGardenerName); err != nil {
			return 0, err
		}
	}
	if err := operation.RemoveFinalizers(ctx, r.GardenClient, bucket, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	r.gone.Mark(bucket)
	return 0, nil
}

// stays handles an extension resource that is not gone yet: it reports a failed deletion, or returns the delay before
// the next check.
func (r *Reconciler) stays(ctx context.Context, bucket *corev1beta1.BackupBucket, last *corev1beta1.LastOperation,
	failure *corev1beta1.LastError) (time.Duration, error) {
	if failure != nil && last != nil && last.Type == corev1beta1.LastOperationTypeDelete {
		return 0, r.fail(ctx, bucket, failure, errors.New(failure.Description))
	}
	return r.requeue(), nil
}

func (r *Reconciler) requeue() time.Duration {
	if r.Requeue > 0 {
		return r.Requeue
	}
	return DefaultRequeue
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
	return true, r.report(ctx, bucket, corev1beta1.LastOperationStatePending, message, nil)
}
