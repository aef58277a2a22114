package core

import (
	"strconv"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func backupEntries() resource.Definition[*gardencore.BackupEntry] {
	return resource.Definition[*gardencore.BackupEntry]{
		Resource: gardencore.Resource("backupentries"), Singular: "backupentry", ShortNames: []string{"bec"}, Categories: all,
		Versions: v1beta1, Namespaced: true,
		New:                  func() *gardencore.BackupEntry { return &gardencore.BackupEntry{} },
		NewList:              func() runtime.Object { return &gardencore.BackupEntryList{} },
		CopySpec:             func(to, from *gardencore.BackupEntry) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.BackupEntry) { to.Status = from.Status },
		Validate:             validation.ValidateBackupEntry,
		ValidateUpdate:       validation.ValidateBackupEntryUpdate,
		ValidateStatusUpdate: validation.ValidateBackupEntryStatusUpdate,
		SpecChanged:          backupEntrySpecChanged,
		Canonicalize: func(e *gardencore.BackupEntry) {
			maintainSeedLabels(&e.ObjectMeta, e.Spec.SeedName, e.Status.SeedName)
		},
		Fields: func(e *gardencore.BackupEntry) fields.Set {
			set := fields.Set{gardencore.BackupEntrySeedName: ptr.Deref(e.Spec.SeedName, ""), gardencore.BackupEntryBucketName: e.Spec.BucketName}
			set[gardencore.BackupEntryShootRefName], set[gardencore.BackupEntryShootRefNamespace] = refFields(e.Spec.ShootRef)
			return set
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
