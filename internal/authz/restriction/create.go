package restriction

import (
	"context"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// own refuses the request unless one of the seeds is the user's.
func (r *request) own(seeds ...*string) error {
	if slices.ContainsFunc(seeds, r.isOwn) {
		return nil
	}
	return forbidden("%s", foreign(r.seed))
}

func (r *request) isOwn(seed *string) bool { return seed != nil && *seed == r.seed }

func (r *request) seedNamespace() string { return seedidentity.NamespacePrefix + r.seed }

func createBackupBucket(ctx context.Context, r *request) error {
	bucket := r.obj.(*corev1beta1.BackupBucket)
	if err := r.own(bucket.Spec.SeedName); err != nil {
		return err
	}
	if err := r.namedAsOwnSeed(ctx); err != nil {
		return err
	}
	before := *bucket
	before.Spec = corev1beta1.BackupBucketSpec{}
	return r.mayRefer(ctx, &before, bucket)
}

// namedAsOwnSeed refuses a BackupBucket that is not named after the UID of the user's Seed: under the UID of another
// Seed, it would replace the bucket of that seed.
func (r *request) namedAsOwnSeed(ctx context.Context) error {
	seed := &corev1beta1.Seed{}
	if err := r.get(ctx, seeds.resource, "", r.seed, seed); err != nil {
		return err
	}
	if seed.UID == "" || string(seed.UID) != r.name {
		return forbidden("%s: its BackupBucket is named %q, after its UID", foreign(r.seed), seed.UID)
	}
	return nil
}

const sourcePrefix = constants.BackupSourcePrefix + "-"

func createBackupEntry(ctx context.Context, r *request) error {
	entry := r.obj.(*corev1beta1.BackupEntry)
	if err := r.own(entry.Spec.SeedName); err != nil {
		return err
	}
	original, isSource := strings.CutPrefix(r.name, sourcePrefix)
	shoot, err := r.namedAsOwnShoot(ctx, entry, original)
	if err != nil {
		return err
	}
	if isSource {
		return r.createSourceBackupEntry(ctx, entry, shoot, original)
	}
	return r.ownBucket(ctx, entry.Spec.BucketName)
}

// namedAsOwnShoot returns the shoot of a BackupEntry. It refuses an entry that is not named after a shoot of the seed:
// under the name of the entry of another seed's shoot, it would replace that entry.
func (r *request) namedAsOwnShoot(ctx context.Context, entry *corev1beta1.BackupEntry, name string) (*corev1beta1.Shoot, error) {
	shoot, err := r.shoot(ctx, r.namespace, owningShoot(entry))
	if err != nil {
		return nil, err
	}
	if err := r.own(shoot.Spec.SeedName, shoot.Status.SeedName); err != nil {
		return nil, err
	}
	status := shoot.Status
	if status.TechnicalID == "" || status.UID == "" || name != status.TechnicalID+"--"+string(status.UID) {
		return nil, forbidden("%s: the BackupEntry of shoot %s/%s is named %s--%s, after its technical ID and UID",
			foreign(r.seed), r.namespace, shoot.Name, status.TechnicalID, status.UID)
	}
	return shoot, nil
}

func (r *request) ownBucket(ctx context.Context, name string) error {
	bucket := &corev1beta1.BackupBucket{}
	if err := r.get(ctx, backupBuckets.resource, "", name, bucket); err != nil {
		return err
	}
	if !r.isOwn(bucket.Spec.SeedName) {
		return forbidden("%s: its BackupBucket %s does not", foreign(r.seed), name)
	}
	return nil
}

// createSourceBackupEntry checks the entry through which a shoot's backups are copied from the bucket of its previous
// seed. That bucket belongs to the other seed, so the entry is allowed only while the shoot is restored, and only with
// the specification of the original entry. Afterwards the gardenlet moves the original to its own bucket.
func (r *request) createSourceBackupEntry(ctx context.Context, entry *corev1beta1.BackupEntry, shoot *corev1beta1.Shoot,
	originalName string) error {
	if err := r.own(shoot.Spec.SeedName); err != nil {
		return err
	}
	last := shoot.Status.LastOperation
	if last == nil || last.Type != corev1beta1.LastOperationTypeRestore || last.State != corev1beta1.LastOperationStateProcessing {
		return forbidden("a source BackupEntry can be created only while its shoot is restored; shoot %s/%s is not", r.namespace, shoot.Name)
	}
	original := &corev1beta1.BackupEntry{}
	if err := r.get(ctx, backupEntries.resource, r.namespace, originalName, original); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(entry.Spec, original.Spec) {
		return forbidden("a source BackupEntry must have the same specification as the original one, %s/%s", r.namespace, originalName)
	}
	return nil
}

// owningShoot returns the name of the shoot that owns a BackupEntry, "" if there is none.
func owningShoot(entry *corev1beta1.BackupEntry) string {
	_, edges, _ := graph.EdgesOf(entry, nil)
	for _, e := range edges {
		if e.To.Kind == graph.KindShoot {
			return e.To.Name
		}
	}
	return ""
}

func createBastion(_ context.Context, r *request) error {
	return r.own(r.obj.(*operationsv1alpha1.Bastion).Spec.SeedName)
}

// writeGardenlet checks creates and updates.
func writeGardenlet(ctx context.Context, r *request) error {
	if r.namespace != constants.GardenNamespace {
		return forbidden("%s: Gardenlets are in the namespace %s", foreign(r.seed), constants.GardenNamespace)
	}
	if err := r.own(&r.name); err != nil {
		return err
	}
	if err := r.asksNoNewKubeconfig(); err != nil {
		return err
	}
	return r.mayRefer(ctx, r.before, r.obj)
}

func createLease(_ context.Context, r *request) error {
	switch {
	case r.extension:
		if r.namespace == r.seedNamespace() {
			return nil
		}
	case r.name == leaderElectionLease:
		return nil
	case r.namespace == corev1beta1.GardenerSeedLeaseNamespace:
		return r.own(&r.name)
	}
	return forbidden("%s", foreign(r.seed))
}

// leaderElectionLease is the Lease for the leader election of a gardenlet's replicas.
const leaderElectionLease = "gardenlet-leader-election"

// writeSeed allows creates and updates by the Seed's own gardenlet only. The Seed of a ManagedSeed has a path to the seed
// of its shoot, whose gardenlet could let the certificate in the status expire, and create credentials for the Seed.
// References have a path, as in BackupBuckets.
func writeSeed(ctx context.Context, r *request) error {
	if err := r.own(&r.name); err != nil {
		return err
	}
	return r.mayRefer(ctx, r.before, r.obj)
}

// ownShootState allows the ShootState of a shoot on the seed, or on the way to or from it.
func ownShootState(ctx context.Context, r *request) error {
	return r.responsibleFor(ctx, r.namespace, r.name)
}

// deleteBackupBucket allows only the bucket that the seed's gardenlet creates, which is named after the Seed's UID.
func deleteBackupBucket(ctx context.Context, r *request) error {
	return r.namedAsOwnSeed(ctx)
}

// deleteBackupEntry allows the seed of the entry, and during a migration both seeds. The seed of a ManagedSeed's shoot
// has a path to the entries on the ManagedSeed, but may not delete them.
func deleteBackupEntry(_ context.Context, r *request) error {
	entry, ok := r.old.(*corev1beta1.BackupEntry)
	if !ok {
		return forbidden("%s", foreign(r.seed)) // the entry does not exist
	}
	return r.own(entry.Spec.SeedName, entry.Status.SeedName)
}

// deleteSeed also allows the gardenlet that deployed the Seed's gardenlet, once a user has deleted the ManagedSeed:
// gardenlets cannot delete ManagedSeeds.
func deleteSeed(ctx context.Context, r *request) error {
	refused := r.own(&r.name)
	if refused == nil {
		return nil
	}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	found, err := r.find(ctx, managedSeeds.resource, constants.GardenNamespace, r.name, managedSeed)
	managedSeed.Namespace = constants.GardenNamespace
	switch {
	case err != nil:
		return err
	case !found:
		return refused
	}
	if err := r.ownManagedSeed(ctx, managedSeed); err != nil {
		return err
	}
	if managedSeed.DeletionTimestamp == nil {
		return forbidden("the Seed can be deleted only while its ManagedSeed %s/%s is", constants.GardenNamespace, r.name)
	}
	return nil
}

// ownManagedSeed refuses a ManagedSeed whose shoot is not on the seed, or that is not in the namespace garden, in which
// alone a ManagedSeed represents the Seed of its name.
func (r *request) ownManagedSeed(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	if managedSeed.Namespace != constants.GardenNamespace {
		return forbidden("%s: ManagedSeeds are in the namespace %s", foreign(r.seed), constants.GardenNamespace)
	}
	if managedSeed.Spec.Shoot == nil {
		return forbidden("%s: ManagedSeed %s/%s names no shoot", foreign(r.seed), managedSeed.Namespace, managedSeed.Name)
	}
	shoot, err := r.shoot(ctx, managedSeed.Namespace, managedSeed.Spec.Shoot.Name)
	if err != nil {
		return err
	}
	return r.own(shoot.Spec.SeedName)
}

// createWorkloadIdentityToken checks the context object of a token: the token claims to be used for this object, and
// for the shoot and seed of the object.
func createWorkloadIdentityToken(ctx context.Context, r *request) error {
	about := r.obj.(*securityv1alpha1.TokenRequest).Spec.ContextObject
	if about == nil {
		return nil
	}
	group, _, _ := strings.Cut(about.APIVersion, "/")
	namespace := ptr.Deref(about.Namespace, "")
	switch {
	case group != corev1beta1.GroupName:
	case about.Kind == shoots.kindName:
		return r.responsibleFor(ctx, namespace, about.Name)
	case about.Kind == seeds.kindName:
		return r.own(&about.Name)
	case about.Kind == backupBuckets.kindName:
		return r.ownBucket(ctx, about.Name)
	case about.Kind == backupEntries.kindName:
		entry := &corev1beta1.BackupEntry{}
		if err := r.get(ctx, backupEntries.resource, namespace, about.Name, entry); err != nil {
			return err
		}
		return r.own(entry.Spec.SeedName, entry.Status.SeedName)
	}
	return forbidden("a token cannot be requested for %s %s", about.Kind, key(namespace, about.Name))
}
