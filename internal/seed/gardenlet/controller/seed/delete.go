package seed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// delete removes the finalizer from a Seed that nothing needs any more. Otherwise it returns the delay until the next
// check.
func (r *Reconciler) delete(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(seed, corev1beta1.GardenerName) {
		return 0, nil
	}
	for _, blockers := range []func(context.Context, *corev1beta1.Seed) (string, error){
		r.shoots, r.backupBuckets, r.controllerInstallations, r.managedResources,
	} {
		what, err := blockers(ctx, seed)
		if err != nil {
			return 0, err
		}
		if what != "" {
			return requeueDeletion, r.reportBlockers(ctx, seed, what)
		}
	}
	if err := r.cleanUp(ctx); err != nil {
		return 0, err
	}
	return 0, r.deleted.RemoveFinalizers(ctx, r.GardenClient, seed, corev1beta1.GardenerName)
}

// reportBlockers reports in an event and in the last operation which objects block the deletion of the Seed.
func (r *Reconciler) reportBlockers(ctx context.Context, seed *corev1beta1.Seed, what string) error {
	message := "Can't delete Seed, because the following objects are still referencing it: " + what
	r.Recorder.Eventf(seed, nil, corev1.EventTypeNormal, constants.EventResourceReferenced, corev1beta1.EventActionDelete, "%s", message)
	return operation.PatchStatus(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		seed.Status.LastOperation = r.lastOperation(seed, corev1beta1.LastOperationStateProcessing, 0, message)
	})
}

// shoots describes the Shoots that are scheduled to the Seed or have not been migrated away from it yet.
func (r *Reconciler) shoots(ctx context.Context, seed *corev1beta1.Seed) (string, error) {
	// The API server maintains the label for the Shoot's seeds in spec and status.
	names, err := list(ctx, r.GardenReader, &corev1beta1.ShootList{},
		client.MatchingLabels{constants.LabelPrefixSeedName + seed.Name: "true"})
	return describeObjects("Shoots", names), err
}

// backupBuckets describes the BackupBuckets of the Seed. It also deletes the Seed's own BackupBucket, which is gone only
// after the last BackupEntry in it.
func (r *Reconciler) backupBuckets(ctx context.Context, seed *corev1beta1.Seed) (string, error) {
	own := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: string(seed.UID)}}
	if err := r.GardenClient.Delete(ctx, own); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("deleting the BackupBucket %s of Seed %s: %w", own.Name, seed.Name, err)
	}
	names, err := list(ctx, r.GardenReader, &corev1beta1.BackupBucketList{}, client.MatchingFields{core.BackupBucketSeedName: seed.Name})
	return describeObjects("BackupBuckets", names), err
}

func (r *Reconciler) controllerInstallations(ctx context.Context, seed *corev1beta1.Seed) (string, error) {
	names, err := list(ctx, r.GardenReader, &corev1beta1.ControllerInstallationList{}, client.MatchingFields{core.SeedRefName: seed.Name})
	return describeObjects("ControllerInstallations", names), err
}

// managedResources describes the ManagedResources of the seed class, which Gardener deployed into the seed.
func (r *Reconciler) managedResources(ctx context.Context, _ *corev1beta1.Seed) (string, error) {
	all := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.SeedReader.List(ctx, all); err != nil {
		return "", fmt.Errorf("listing the ManagedResources of the seed: %w", err)
	}
	var names []string
	for _, resource := range all.Items {
		if ptr.Deref(resource.Spec.Class, "") == constants.SeedResourceManagerClass {
			names = append(names, resource.Namespace+"/"+resource.Name)
		}
	}
	return describeObjects("ManagedResources", names), nil
}

// cleanUp deletes the cluster-identity ConfigMap from the seed if the cluster got it for being a seed.
func (r *Reconciler) cleanUp(ctx context.Context) error {
	identity := identityConfigMap()
	err := r.SeedReader.Get(ctx, client.ObjectKeyFromObject(identity), identity)
	if err == nil && identity.Data[constants.ClusterIdentityOrigin] == constants.ClusterIdentityOriginSeed {
		err = r.SeedClient.Delete(ctx, identity)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the identity of the seed's cluster, ConfigMap %s/%s: %w", identity.Namespace, identity.Name, err)
	}
	return nil
}

func list(ctx context.Context, reader client.Reader, of client.ObjectList, options ...client.ListOption) (names []string, err error) {
	if err := reader.List(ctx, of, options...); err != nil {
		return nil, fmt.Errorf("listing what may still need the Seed, %T: %w", of, err)
	}
	err = meta.EachListItem(of, func(item runtime.Object) error {
		name, err := cache.MetaNamespaceKeyFunc(item)
		names = append(names, name)
		return err
	})
	return names, err
}

// describeObjects returns the kind and the sorted names of objects, or an empty string if there are none.
func describeObjects(kind string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("%s=%v", kind, slices.Compact(names))
}
