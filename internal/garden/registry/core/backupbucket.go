package core

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func backupBuckets() resource.Definition[*gardencore.BackupBucket] {
	return resource.Definition[*gardencore.BackupBucket]{
		Resource: gardencore.Resource("backupbuckets"), Singular: "backupbucket", ShortNames: []string{"bbc"}, Categories: all, Versions: v1beta1,
		New:                  func() *gardencore.BackupBucket { return &gardencore.BackupBucket{} },
		NewList:              func() runtime.Object { return &gardencore.BackupBucketList{} },
		CopySpec:             func(to, from *gardencore.BackupBucket) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.BackupBucket) { to.Status = from.Status },
		Validate:             validation.ValidateBackupBucket,
		ValidateUpdate:       validation.ValidateBackupBucketUpdate,
		ValidateStatusUpdate: validation.ValidateBackupBucketStatusUpdate,
		SpecChanged: func(b, old *gardencore.BackupBucket) bool {
			return !resource.Equal(old.Spec, b.Spec) || resource.ConsumeOperationAnnotation(b, v1beta1constants.GardenerOperationReconcile)
		},
		Fields: func(b *gardencore.BackupBucket) fields.Set {
			set := fields.Set{gardencore.BackupBucketSeedName: ptr.Deref(b.Spec.SeedName, "")}
			set[gardencore.BackupBucketShootRefName], set[gardencore.BackupBucketShootRefNamespace] = refFields(b.Spec.ShootRef)
			return set
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

func refFields(ref *corev1.ObjectReference) (name, namespace string) {
	if ref == nil {
		return "", ""
	}
	return ref.Name, ref.Namespace
}
