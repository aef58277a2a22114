package seedmanagementvalidation

import (
	"fmt"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardenletv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateControllers checks the same controllers as Gardener, in their order in the type. It accepts any
// configuration of the others.
func validateControllers(controllers gardenletv1alpha1.GardenletControllerConfiguration, path *field.Path) field.ErrorList {
	return slices.Concat(
		validation.Optional(controllers.BackupEntry, path.Child("backupEntry"), validateBackupEntryController),
		validation.Optional(controllers.Bastion, path.Child("bastion"),
			func(c gardenletv1alpha1.BastionControllerConfiguration, path *field.Path) field.ErrorList {
				return validation.NotNegative(c.ConcurrentSyncs, path.Child("concurrentSyncs"))
			}),
		validation.Optional(controllers.Shoot, path.Child("shoot"), validateShootController),
		validation.Optional(controllers.ShootCare, path.Child("shootCare"), validateShootCareController),
		validation.Optional(controllers.NetworkPolicy, path.Child("networkPolicy"), validateNetworkPolicyController),
		validation.Optional(controllers.ManagedSeed, path.Child("managedSeed"), validateManagedSeedController),
		validation.Optional(controllers.TokenRequestorWorkloadIdentity, path.Child("tokenRequestorWorkloadIdentity"),
			func(c gardenletv1alpha1.TokenRequestorWorkloadIdentityControllerConfiguration, path *field.Path) field.ErrorList {
				return nonNegativeDuration(c.TokenExpirationDuration, path.Child("tokenExpirationDuration"))
			}),
	)
}

func validateBackupEntryController(controller gardenletv1alpha1.BackupEntryControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	purposesPath := path.Child("deletionGracePeriodShootPurposes")
	if len(controller.DeletionGracePeriodShootPurposes) > 0 && ptr.Deref(controller.DeletionGracePeriodHours, 0) <= 0 {
		errs = append(errs, field.Forbidden(purposesPath, "must not be set unless deletionGracePeriodHours is more than 0"))
	}
	for i, purpose := range controller.DeletionGracePeriodShootPurposes {
		errs = append(errs, validation.Supported(purposesPath.Index(i), purpose,
			gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeEvaluation,
			gardencorev1beta1.ShootPurposeInfrastructure, gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeTesting)...)
	}
	return errs
}

func validateShootController(controller gardenletv1alpha1.ShootControllerConfiguration, path *field.Path) field.ErrorList {
	const shortestTTL, longestTTL = 30, 600 // seconds
	errs := slices.Concat(
		validation.NotNegative(controller.ConcurrentSyncs, path.Child("concurrentSyncs")),
		nonNegativeDuration(controller.ProgressReportPeriod, path.Child("progressReporterPeriod")), // sic, in Gardener's errors
		nonNegativeDuration(controller.RetryDuration, path.Child("retryDuration")),
		nonNegativeDuration(controller.SyncPeriod, path.Child("syncPeriod")),
	)
	if ttl := controller.DNSEntryTTLSeconds; ttl != nil && (*ttl < shortestTTL || *ttl > longestTTL) {
		errs = append(errs, field.Invalid(path.Child("dnsEntryTTLSeconds"), *ttl, fmt.Sprintf("must be from %d to %d", shortestTTL, longestTTL)))
	}
	return errs
}

func validateShootCareController(controller gardenletv1alpha1.ShootCareControllerConfiguration, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validation.NotNegative(controller.ConcurrentSyncs, path.Child("concurrentSyncs")),
		nonNegativeDuration(controller.SyncPeriod, path.Child("syncPeriod")),
		nonNegativeDuration(controller.ManagedResourceProgressingThreshold, path.Child("managedResourceProgressingThreshold")),
	)
	if checks := controller.StaleExtensionHealthChecks; checks != nil {
		errs = append(errs, nonNegativeDuration(checks.Threshold, path.Child("staleExtensionHealthChecks", "threshold"))...)
	}
	for i, threshold := range controller.ConditionThresholds {
		errs = append(errs, nonNegativeDuration(&threshold.Duration, path.Child("conditionThresholds").Index(i).Child("duration"))...)
	}
	return errs
}

func validateNetworkPolicyController(controller gardenletv1alpha1.NetworkPolicyControllerConfiguration, path *field.Path) field.ErrorList {
	errs := validation.NotNegative(controller.ConcurrentSyncs, path.Child("concurrentSyncs"))
	for i := range controller.AdditionalNamespaceSelectors {
		errs = append(errs, metav1validation.ValidateLabelSelector(&controller.AdditionalNamespaceSelectors[i],
			metav1validation.LabelSelectorValidationOptions{}, path.Child("additionalNamespaceSelectors").Index(i))...)
	}
	return errs
}

func validateManagedSeedController(controller gardenletv1alpha1.ManagedSeedControllerConfiguration, path *field.Path) field.ErrorList {
	return slices.Concat(
		validation.NotNegative(controller.ConcurrentSyncs, path.Child("concurrentSyncs")),
		nonNegativeDuration(controller.SyncPeriod, path.Child("syncPeriod")),
		nonNegativeDuration(controller.WaitSyncPeriod, path.Child("waitSyncPeriod")),
		nonNegativeDuration(controller.SyncJitterPeriod, path.Child("syncJitterPeriod")),
	)
}
