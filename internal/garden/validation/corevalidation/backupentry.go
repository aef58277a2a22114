package corevalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateBackupEntry checks a new backup entry. It accepts any name, which consists of a technical ID and a UID.
func ValidateBackupEntry(entry *gardencore.BackupEntry) field.ErrorList {
	spec, path := &entry.Spec, field.NewPath("spec")
	anyName := func(string, bool) []string { return nil }
	errs := slices.Concat(
		apivalidation.ValidateObjectMeta(&entry.ObjectMeta, true, anyName, field.NewPath("metadata")),
		notEmpty(path.Child("bucketName"), spec.BucketName),
		validateSeedOrShoot(spec.SeedName, spec.ShootRef, path),
	)
	if shoot := spec.ShootRef; spec.SeedName == nil && shoot != nil && shoot.Namespace != "" && shoot.Namespace != entry.Namespace {
		errs = append(errs, field.Forbidden(path.Child("shootRef", "namespace"), "must be the namespace of the BackupEntry"))
	}
	return errs
}

// ValidateBackupEntryUpdate checks a changed backup entry. All of its specification may change, because a control
// plane migration moves it.
func ValidateBackupEntryUpdate(newEntry, oldEntry *gardencore.BackupEntry) field.ErrorList {
	return append(
		apivalidation.ValidateObjectMetaUpdate(&newEntry.ObjectMeta, &oldEntry.ObjectMeta, field.NewPath("metadata")),
		ValidateBackupEntry(newEntry)...,
	)
}

// ValidateBackupEntryStatusUpdate accepts any status.
func ValidateBackupEntryStatusUpdate(_, _ *gardencore.BackupEntry) field.ErrorList { return nil }
