package backupbucket

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// copyStatus copies the provider status and the generated credentials from the extension resource to the garden.
func (r *Reconciler) copyStatus(ctx context.Context, bucket *corev1beta1.BackupBucket, extension *extensionsv1alpha1.BackupBucket) error {
	err := operation.PatchStatus(ctx, r.GardenClient, bucket, func(bucket *corev1beta1.BackupBucket) {
		if extension.Status.ProviderStatus != nil {
			bucket.Status.ProviderStatus = extension.Status.ProviderStatus
		}
		if extension.Status.GeneratedSecretRef != nil {
			// The reference is written before the Secret: only with it may the gardenlet read and change the Secret.
			bucket.Status.GeneratedSecretRef = &corev1.SecretReference{
				Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name,
			}
		}
	})
	if err != nil || extension.Status.GeneratedSecretRef == nil {
		return err
	}
	ref := extension.Status.GeneratedSecretRef
	generated := &corev1.Secret{}
	if err := r.SeedClient.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, generated); err != nil {
		return fmt.Errorf("reading the credentials that were generated for BackupBucket %s, in Secret %s/%s of the seed: %w",
			bucket.Name, ref.Namespace, ref.Name, err)
	}
	return r.writeGenerated(ctx, bucket, generated.Data)
}

// writeGenerated writes generated credentials into the garden. It tries to create the Secret first: if its reference is new,
// the garden may not let the gardenlet read the Secret yet.
func (r *Reconciler) writeGenerated(ctx context.Context, bucket *corev1beta1.BackupBucket, data map[string][]byte) error {
	fill := func(secret *corev1.Secret) {
		secret.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(bucket, corev1beta1.SchemeGroupVersion.WithKind("BackupBucket"))}
		controllerutil.AddFinalizer(secret, finalizer)
		secret.Data = data
	}
	secret := generatedSecret(bucket)
	fill(secret)
	err := r.GardenClient.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		secret = generatedSecret(bucket)
		if err = r.GardenReader.Get(ctx, client.ObjectKeyFromObject(secret), secret); err == nil {
			return operation.Patch(ctx, r.GardenClient, secret, fill)
		}
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s of the garden with the generated credentials of BackupBucket %s: %w",
			client.ObjectKeyFromObject(secret), bucket.Name, err)
	}
	return nil
}

// deleteGenerated deletes the generated credentials in the garden.
func (r *Reconciler) deleteGenerated(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	if bucket.Status.GeneratedSecretRef == nil {
		return nil
	}
	secret := generatedSecret(bucket)
	err := r.GardenReader.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = operation.RemoveFinalizers(ctx, r.GardenClient, secret, finalizer)
	}
	if err == nil {
		err = client.IgnoreNotFound(r.GardenClient.Delete(ctx, secret))
	}
	if err != nil {
		return fmt.Errorf("deleting the generated credentials of BackupBucket %s in Secret %s of the garden: %w", bucket.Name,
			client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

func generatedSecret(bucket *corev1beta1.BackupBucket) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name,
	}}
}
