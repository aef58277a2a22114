package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// createdBy is Gardener's annotation with the BackupEntry that a shoot's Secret for etcd's backups was created from.
const createdBy = "backup.gardener.cloud/created-by"

// reconcileBucket generates credentials for the bucket, as provider-local does: a Secret without data.
func reconcileBucket(ctx context.Context, seed client.Client, bucket *extensionsv1alpha1.BackupBucket) error {
	namespace := cmp.Or(bucket.Annotations[constants.AnnotationBackupBucketGeneratedSecretNamespace], constants.GardenNamespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name,
	}}
	if ref := bucket.Status.GeneratedSecretRef; ref != nil {
		secret.Namespace, secret.Name = ref.Namespace, ref.Name
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, seed, secret, func() error { return nil }); err != nil {
		return fmt.Errorf("generating the credentials of BackupBucket %s in Secret %s/%s: %w", bucket.Name, secret.Namespace, secret.Name, err)
	}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}
	return nil
}

func deleteBucket(ctx context.Context, seed client.Client, bucket *extensionsv1alpha1.BackupBucket) error {
	ref := bucket.Status.GeneratedSecretRef
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	if err := seed.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the generated credentials of BackupBucket %s in Secret %s/%s: %w", bucket.Name, ref.Namespace, ref.Name, err)
	}
	return nil
}

// reconcileEntry writes the credentials for etcd's backups into the shoot's control plane, if its namespace exists.
func reconcileEntry(ctx context.Context, seed client.Client, entry *extensionsv1alpha1.BackupEntry) error {
	target := etcdSecret(entry)
	namespace := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: target.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Namespace %s of BackupEntry %s: %w", target.Namespace, entry.Name, err)
	} else if err != nil || namespace.DeletionTimestamp != nil {
		return nil
	}
	source := &corev1.Secret{}
	ref := entry.Spec.SecretRef
	if err := seed.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		return fmt.Errorf("reading the credentials of BackupEntry %s in Secret %s/%s: %w", entry.Name, ref.Namespace, ref.Name, err)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, seed, target, func() error {
		target.Annotations = map[string]string{createdBy: entry.Name}
		target.Data = map[string][]byte{}
		maps.Copy(target.Data, source.Data)
		target.Data[constants.DataKeyBackupBucketName] = []byte(entry.Spec.BucketName)
		return nil
	})
	if err != nil {
		return fmt.Errorf("giving etcd the credentials of BackupEntry %s in Secret %s/%s: %w", entry.Name, target.Namespace, target.Name, err)
	}
	return nil
}

// releaseEntry deletes these credentials, unless they belong to another entry by now.
func releaseEntry(ctx context.Context, seed client.Client, entry *extensionsv1alpha1.BackupEntry) error {
	secret := etcdSecret(entry)
	if err := seed.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading etcd's credentials of BackupEntry %s in Secret %s/%s: %w", entry.Name, secret.Namespace, secret.Name, err)
	} else if err != nil || secret.Annotations[createdBy] != entry.Name {
		return nil
	}
	if err := seed.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting etcd's credentials of BackupEntry %s in Secret %s/%s: %w", entry.Name, secret.Namespace, secret.Name, err)
	}
	return nil
}

// etcdSecret returns the Secret in which etcd in the shoot's control plane finds credentials. The name of an entry is
// "namespace--UID of the shoot", with the prefix "source-" if backups are copied from it.
func etcdSecret(entry *extensionsv1alpha1.BackupEntry) *corev1.Secret {
	namespace, isSource := strings.CutPrefix(entry.Name, constants.BackupSourcePrefix+"-")
	if i := strings.LastIndex(namespace, "--"); i >= 0 {
		namespace = namespace[:i]
	}
	name := constants.BackupSecretName
	if isSource {
		name = constants.BackupSourcePrefix + "-" + name
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
