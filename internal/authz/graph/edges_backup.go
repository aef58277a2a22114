package graph

import (
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
)

func backupBucketEdges(bucket *gardencorev1beta1.BackupBucket) *edgeBuilder {
	b := edgesFor(KindBackupBucket, "", bucket.Name)
	b.fromCredentials(bucket.Spec.CredentialsRef)
	if secret := bucket.Status.GeneratedSecretRef; secret != nil && secret.Namespace != "" {
		b.from(KindSecret, secret.Namespace, secret.Name)
	}
	b.toSeeds(bucket.Spec.SeedName, nil)
	return b
}

// backupEntryEdges adds an edge from the bucket to the seed in the specification only. An edge through the entry would
// also lead to the seed in the status. During a migration, that is the source seed, which writes the status itself,
// while the bucket is already that of the destination seed.
func backupEntryEdges(entry *gardencorev1beta1.BackupEntry) *edgeBuilder {
	b := edgesFor(KindBackupEntry, entry.Namespace, entry.Name)
	if seed := entry.Spec.SeedName; seed != nil {
		b.between(Vertex{Kind: KindBackupBucket, Name: entry.Spec.BucketName}, Vertex{Kind: KindSeed, Name: *seed})
	}
	b.toSeeds(entry.Spec.SeedName, entry.Status.SeedName)
	for _, owner := range entry.OwnerReferences {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if owner.Kind == "Shoot" && group == gardencorev1beta1.GroupName {
			b.to(KindShoot, entry.Namespace, owner.Name)
			break // an entry belongs to one shoot
		}
	}
	return b
}

func bastionEdges(bastion *operationsv1alpha1.Bastion) *edgeBuilder {
	b := edgesFor(KindBastion, bastion.Namespace, bastion.Name)
	b.toSeeds(bastion.Spec.SeedName, nil)
	return b
}
