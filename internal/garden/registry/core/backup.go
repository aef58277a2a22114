package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/core"
)

func backupBuckets() resource.Definition[*gardencore.BackupBucket] {
	return resource.Definition[*gardencore.BackupBucket]{
		Resource: gardencore.Resource("backupbuckets"), Singular: "backupbucket", ShortNames: []string{"bbc"}, Versions: v1beta1,
		New:                  func() *gardencore.BackupBucket { return &gardencore.BackupBucket{} },
		NewList:              func() runtime.Object { return &gardencore.BackupBucketList{} },
		Validate:             validation.ValidateBackupBucket,
		ValidateUpdate:       validation.ValidateBackupBucketUpdate,
		ValidateStatusUpdate: validation.ValidateBackupBucketStatusUpdate,
		CopySpec:             func(to, from *gardencore.BackupBucket) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.BackupBucket) { to.Status = from.Status },
		SpecChanged: func(b, old *gardencore.BackupBucket) bool {
			return !resource.SpecEquality(old.Spec, b.Spec) || resource.TakeOperation(b, v1beta1constants.GardenerOperationReconcile)
		},
		Fields: func(b *gardencore.BackupBucket) fields.Set {
			set := fields.Set{gardencore.BackupBucketSeedName: ptr.Deref(b.Spec.SeedName, "")}
			set[gardencore.BackupBucketShootRefName], set[gardencore.BackupBucketShootRefNamespace] = refFields(b.Spec.ShootRef)
			return set
		},
		Indexed: []string{gardencore.BackupBucketSeedName, gardencore.BackupBucketShootRefName, gardencore.BackupBucketShootRefNamespace},
		Columns: []resource.Column[*gardencore.BackupBucket]{
			{Name: "Provider", About: "The provider type.", Value: func(b *gardencore.BackupBucket) any { return b.Spec.Provider.Type }},
			{Name: "Region", About: "The region.", Value: func(b *gardencore.BackupBucket) any { return b.Spec.Provider.Region }},
			{Name: "Seed", About: "The seed that uses it.", Value: func(b *gardencore.BackupBucket) any { return ptr.Deref(b.Spec.SeedName, resource.None) }},
			{Name: "Last Operation", About: "What is, or was last, done to it.", Value: func(b *gardencore.BackupBucket) any { return lastOperation(b.Status.LastOperation) }},
		},
	}
}

func backupEntries() resource.Definition[*gardencore.BackupEntry] {
	return resource.Definition[*gardencore.BackupEntry]{
		Resource: gardencore.Resource("backupentries"), Singular: "backupentry", ShortNames: []string{"bec"}, Versions: v1beta1, Namespaced: true,
		New:                  func() *gardencore.BackupEntry { return &gardencore.BackupEntry{} },
		NewList:              func() runtime.Object { return &gardencore.BackupEntryList{} },
		Validate:             validation.ValidateBackupEntry,
		ValidateUpdate:       validation.ValidateBackupEntryUpdate,
		ValidateStatusUpdate: validation.ValidateBackupEntryStatusUpdate,
		CopySpec:             func(to, from *gardencore.BackupEntry) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.BackupEntry) { to.Status = from.Status },
		SpecChanged: func(e, old *gardencore.BackupEntry) bool {
			return !resource.SpecEquality(old.Spec, e.Spec) || resource.TakeOperation(e, v1beta1constants.GardenerOperationReconcile) ||
				old.Annotations[gardencore.BackupEntryForceDeletion] != e.Annotations[gardencore.BackupEntryForceDeletion]
		},
		Canonicalize: func(e *gardencore.BackupEntry) {
			maintainSeedLabels(&e.ObjectMeta, e.Spec.SeedName, e.Status.SeedName)
		},
		Fields: func(e *gardencore.BackupEntry) fields.Set {
			set := fields.Set{gardencore.BackupEntrySeedName: ptr.Deref(e.Spec.SeedName, ""), gardencore.BackupEntryBucketName: e.Spec.BucketName}
			set[gardencore.BackupEntryShootRefName], set[gardencore.BackupEntryShootRefNamespace] = refFields(e.Spec.ShootRef)
			return set
		},
		Indexed: []string{gardencore.BackupEntrySeedName, gardencore.BackupEntryBucketName},
		Columns: []resource.Column[*gardencore.BackupEntry]{
			{Name: "Bucket", About: "The BackupBucket.", Value: func(e *gardencore.BackupEntry) any { return e.Spec.BucketName }},
			{Name: "Seed", About: "The seed that uses it.", Value: func(e *gardencore.BackupEntry) any { return ptr.Deref(e.Spec.SeedName, resource.None) }},
			{Name: "Last Operation", About: "What is, or was last, done to it.", Value: func(e *gardencore.BackupEntry) any { return lastOperation(e.Status.LastOperation) }},
		},
	}
}

func refFields(ref *corev1.ObjectReference) (name, namespace string) {
	if ref == nil {
		return "", ""
	}
	return ref.Name, ref.Namespace
}
