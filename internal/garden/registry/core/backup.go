package core

import (
	"strconv"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func backupBuckets() resource.Definition[*gardencore.BackupBucket] {
	return resource.Definition[*gardencore.BackupBucket]{
		Resource: gardencore.Resource("backupbuckets"), Kind: "BackupBucket", ShortNames: []string{"bbc"}, Categories: all, Versions: v1beta1,
		CopySpec:       func(to, from *gardencore.BackupBucket) { to.Spec = from.Spec },
		CopyStatus:     func(to, from *gardencore.BackupBucket) { to.Status = from.Status },
		Validate:       validation.ValidateBackupBucket,
		ValidateUpdate: validation.ValidateBackupBucketUpdate,
		SpecChanged: func(b, old *gardencore.BackupBucket) bool {
			return !resource.Equal(old.Spec, b.Spec) || resource.ConsumeOperationAnnotation(b, v1beta1constants.GardenerOperationReconcile)
		},
		Fields: func(b *gardencore.BackupBucket) fields.Set {
			shoot := ptr.Deref(b.Spec.ShootRef, corev1.ObjectReference{})
			return fields.Set{gardencore.BackupBucketSeedName: ptr.Deref(b.Spec.SeedName, ""),
				gardencore.BackupBucketShootRefName: shoot.Name, gardencore.BackupBucketShootRefNamespace: shoot.Namespace}
		},
		Indexed: []string{gardencore.BackupBucketSeedName, gardencore.BackupBucketShootRefName, gardencore.BackupBucketShootRefNamespace},
		Columns: []resource.Column[*gardencore.BackupBucket]{
			{Name: "Provider", Description: "The provider type.", Value: func(b *gardencore.BackupBucket) any { return b.Spec.Provider.Type }},
			{Name: "Seed", Description: "The seed that uses it.",
				Value: func(b *gardencore.BackupBucket) any { return ptr.Deref(b.Spec.SeedName, resource.None) }},
			{Name: "Operation", Description: "How far the last operation has come.",
				Value: func(b *gardencore.BackupBucket) any { return operationState(b.Status.LastOperation) }},
			{Name: "Progress", Description: "Progress of the last operation in percent.",
				Value: func(b *gardencore.BackupBucket) any { return operationProgress(b.Status.LastOperation) }},
		},
	}
}

func backupEntries() resource.Definition[*gardencore.BackupEntry] {
	return resource.Definition[*gardencore.BackupEntry]{
		Resource: gardencore.Resource("backupentries"), Kind: "BackupEntry", ShortNames: []string{"bec"}, Categories: all,
		Versions: v1beta1, Namespaced: true,
		CopySpec:       func(to, from *gardencore.BackupEntry) { to.Spec = from.Spec },
		CopyStatus:     func(to, from *gardencore.BackupEntry) { to.Status = from.Status },
		Validate:       validation.ValidateBackupEntry,
		ValidateUpdate: validation.ValidateBackupEntryUpdate,
		SpecChanged:    backupEntrySpecChanged,
		Canonicalize: func(e *gardencore.BackupEntry) {
			maintainSeedLabels(&e.ObjectMeta, e.Spec.SeedName, e.Status.SeedName)
		},
		Fields: func(e *gardencore.BackupEntry) fields.Set {
			shoot := ptr.Deref(e.Spec.ShootRef, corev1.ObjectReference{})
			return fields.Set{gardencore.BackupEntrySeedName: ptr.Deref(e.Spec.SeedName, ""), gardencore.BackupEntryBucketName: e.Spec.BucketName,
				gardencore.BackupEntryShootRefName: shoot.Name, gardencore.BackupEntryShootRefNamespace: shoot.Namespace}
		},
		Indexed: []string{gardencore.BackupEntrySeedName, gardencore.BackupEntryBucketName, gardencore.BackupEntryShootRefName,
			gardencore.BackupEntryShootRefNamespace},
		Columns: []resource.Column[*gardencore.BackupEntry]{
			{Name: "Bucket", Description: "The BackupBucket.", Value: func(e *gardencore.BackupEntry) any { return e.Spec.BucketName }},
			{Name: "Seed", Description: "The seed that uses it.",
				Value: func(e *gardencore.BackupEntry) any { return ptr.Deref(e.Spec.SeedName, resource.None) }},
			{Name: "Operation", Description: "How far the last operation has come.",
				Value: func(e *gardencore.BackupEntry) any { return operationState(e.Status.LastOperation) }},
			{Name: "Progress", Description: "Progress of the last operation in percent.",
				Value: func(e *gardencore.BackupEntry) any { return operationProgress(e.Status.LastOperation) }},
		},
	}
}

func backupEntrySpecChanged(entry, old *gardencore.BackupEntry) bool {
	forced := func(e *gardencore.BackupEntry) bool {
		force, _ := strconv.ParseBool(e.Annotations[gardencore.BackupEntryForceDeletion])
		return force
	}
	if !resource.Equal(old.Spec, entry.Spec) || forced(entry) && !forced(old) {
		return true
	}
	// The gardenlet has to see that it must restore, not just reconcile: it removes this annotation itself.
	if resource.HasOperationAnnotation(entry, v1beta1constants.GardenerOperationRestore) {
		return !resource.HasOperationAnnotation(old, v1beta1constants.GardenerOperationRestore)
	}
	return resource.ConsumeOperationAnnotation(entry, v1beta1constants.GardenerOperationReconcile, v1beta1constants.GardenerOperationMigrate)
}
