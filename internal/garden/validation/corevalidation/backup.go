package corevalidation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// ValidateBackupBucket checks a new backup bucket.
func ValidateBackupBucket(bucket *gardencore.BackupBucket) field.ErrorList {
	spec, path := &bucket.Spec, field.NewPath("spec")
	errs := slices.Concat(
		apivalidation.ValidateObjectMeta(&bucket.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		notEmpty(path.Child("provider", "type"), spec.Provider.Type),
		notEmpty(path.Child("provider", "region"), spec.Provider.Region),
		validateSeedOrShoot(spec.SeedName, spec.ShootRef, path),
	)
	return append(errs, validateRequiredCredentialsRef(spec.CredentialsRef, path.Child("credentialsRef"))...)
}

// ValidateBackupBucketUpdate checks a changed backup bucket: its provider and its seed must not change.
func ValidateBackupBucketUpdate(newBucket, oldBucket *gardencore.BackupBucket) field.ErrorList {
	path := field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newBucket.ObjectMeta, &oldBucket.ObjectMeta, field.NewPath("metadata")),
		immutable(newBucket.Spec.Provider, oldBucket.Spec.Provider, path.Child("provider")),
		immutable(newBucket.Spec.SeedName, oldBucket.Spec.SeedName, path.Child("seedName")),
		ValidateBackupBucket(newBucket),
	)
}

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

// validateSeedOrShoot checks that exactly one is set: the name of a seed, or a complete reference to a shoot. Backups
// are made in either of them.
func validateSeedOrShoot(seedName *string, shootRef *corev1.ObjectReference, path *field.Path) field.ErrorList {
	seedPath, shootPath := path.Child("seedName"), path.Child("shootRef")
	switch {
	case seedName == nil && shootRef == nil:
		return field.ErrorList{field.Invalid(seedPath, seedName, "either this or shootRef must be set")}
	case seedName != nil && shootRef != nil:
		return field.ErrorList{field.Invalid(seedPath, *seedName, "must not be set together with shootRef")}
	case seedName != nil:
		return notEmpty(seedPath, *seedName)
	}
	var errs field.ErrorList
	if version := gardencorev1beta1.SchemeGroupVersion.String(); shootRef.APIVersion != version {
		errs = append(errs, field.Forbidden(shootPath.Child("apiVersion"), "must be "+version))
	}
	errs = append(errs, ForbiddenIf(shootRef.Kind != "Shoot", shootPath.Child("kind"), "must be Shoot")...)
	errs = append(errs, notEmpty(shootPath.Child("name"), shootRef.Name)...)
	return append(errs, notEmpty(shootPath.Child("namespace"), shootRef.Namespace)...)
}

func validateRequiredCredentialsRef(ref *corev1.ObjectReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return field.ErrorList{field.Required(path, "must refer to a Secret or a WorkloadIdentity")}
	}
	return ValidateCredentialsRef(*ref, path)
}
