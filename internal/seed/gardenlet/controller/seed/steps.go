package seed

import (
	"context"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ensureNamespaces creates the namespace garden, and adds the labels that policies and tools expect to it and kube-system.
func (r *Reconciler) ensureNamespaces(ctx context.Context, seed *corev1beta1.Seed) error {
	err := r.ensureNamespace(ctx, constants.GardenNamespace, func(namespace *corev1.Namespace) {
		for label, value := range map[string]string{
			podsecurity.EnforceLevelLabel:                    string(podsecurity.LevelPrivileged),
			resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
			constants.GardenRole:                             constants.GardenRoleGarden,
			constants.LabelRole:                              constants.GardenNamespace,
		} {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, label, value)
		}
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigZones,
			strings.Join(seed.Spec.Provider.Zones, ","))
	})
	if err != nil {
		return err
	}
	return r.ensureNamespace(ctx, metav1.NamespaceSystem, func(namespace *corev1.Namespace) {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, constants.LabelRole, metav1.NamespaceSystem)
	})
}

func (r *Reconciler) ensureNamespace(ctx context.Context, name string, mutate func(*corev1.Namespace)) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return controllerutils.CreateOrPatch(ctx, r.SeedClient, r.SeedReader, namespace, func(namespace *corev1.Namespace) error {
		mutate(namespace)
		return nil
	})
}

// ensureIdentity ensures the cluster-identity ConfigMap, which identifies the seed's cluster, and copies the identity into
// the Seed's status if it has none yet. An existing ConfigMap is kept, whatever its origin is.
func (r *Reconciler) ensureIdentity(ctx context.Context, seed *corev1beta1.Seed) error {
	identity, err := r.identity(ctx)
	if err != nil {
		return fmt.Errorf("looking for the identity of the seed's cluster, ConfigMap %s/%s: %w", metav1.NamespaceSystem,
			constants.ClusterIdentity, err)
	}
	return operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		if seed.Status.ClusterIdentity == nil { // the identity must not change
			seed.Status.ClusterIdentity = &identity
		}
	})
}

func (r *Reconciler) identity(ctx context.Context) (string, error) {
	current := identityConfigMap()
	err := r.SeedReader.Get(ctx, client.ObjectKeyFromObject(current), current)
	if err == nil {
		return current.Data[constants.ClusterIdentity], nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	system := &corev1.Namespace{}
	if err := r.SeedReader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", err
	}
	wanted := identityConfigMap()
	wanted.Immutable = ptr.To(true)
	wanted.Data = map[string]string{
		constants.ClusterIdentity:       string(system.UID),
		constants.ClusterIdentityOrigin: constants.ClusterIdentityOriginSeed,
	}
	return string(system.UID), r.SeedClient.Create(ctx, wanted)
}

func identityConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}}
}

// ensureBackupBucket ensures the BackupBucket for the Shoots of a Seed with backups. If the BackupBucket is up to date, it
// is annotated for a reconciliation, because the Seed is being reconciled.
func (r *Reconciler) ensureBackupBucket(ctx context.Context, seed *corev1beta1.Seed) error {
	if seed.Spec.Backup == nil {
		return nil
	}
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: string(seed.UID)}}
	return controllerutils.CreateOrPatch(ctx, r.GardenClient, r.GardenReader, bucket, func(bucket *corev1beta1.BackupBucket) error {
		if same := writeBucket(bucket, seed); same {
			metav1.SetMetaDataAnnotation(&bucket.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
		}
		return nil
	})
}

// writeBucket writes the desired state into the bucket, and reports whether its spec was the same before.
func writeBucket(bucket *corev1beta1.BackupBucket, seed *corev1beta1.Seed) (same bool) {
	before := bucket.Spec.DeepCopy()
	backup := seed.Spec.Backup.DeepCopy()
	bucket.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))}
	bucket.Spec = corev1beta1.BackupBucketSpec{
		Provider:       corev1beta1.BackupBucketProvider{Type: backup.Provider, Region: ptr.Deref(backup.Region, seed.Spec.Provider.Region)},
		ProviderConfig: backup.ProviderConfig,
		CredentialsRef: backup.CredentialsRef,
		SeedName:       ptr.To(seed.Name),
	}
	return equality.Semantic.DeepEqual(before, &bucket.Spec)
}
