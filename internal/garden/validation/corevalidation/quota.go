package corevalidation

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// QuotaMetrics are the metrics that quotas can limit.
var QuotaMetrics = []corev1.ResourceName{
	gardencore.QuotaMetricCPU, gardencore.QuotaMetricGPU, gardencore.QuotaMetricMemory,
	gardencore.QuotaMetricStorageStandard, gardencore.QuotaMetricStoragePremium, gardencore.QuotaMetricLoadbalancer,
}

// ValidateQuota checks a new quota.
func ValidateQuota(quota *gardencore.Quota) field.ErrorList {
	spec, path := &quota.Spec, field.NewPath("spec")
	errs := apivalidation.ValidateObjectMeta(&quota.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if days := spec.ClusterLifetimeDays; days != nil && *days < 1 {
		errs = append(errs, field.Invalid(path.Child("clusterLifetimeDays"), *days, "must be greater than 0"))
	}
	errs = append(errs, validateGVK(spec.Scope.GroupVersionKind(), path.Child("scope"), projectGVK, secretGVK, workloadIdentityGVK)...)
	for _, metric := range slices.Sorted(maps.Keys(spec.Metrics)) {
		value, metricPath := spec.Metrics[metric], path.Child("metrics").Key(string(metric))
		errs = append(errs, InvalidIf(!slices.Contains(QuotaMetrics, metric), metricPath, value.String(),
			fmt.Sprintf("must be one of the metrics %v", QuotaMetrics))...)
		errs = append(errs, validateQuantity(metric, value, metricPath)...)
	}
	return errs
}

// ValidateQuotaUpdate checks a changed quota: its scope must not change.
func ValidateQuotaUpdate(newQuota, oldQuota *gardencore.Quota) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newQuota.ObjectMeta, &oldQuota.ObjectMeta, field.NewPath("metadata")),
		immutable(newQuota.Spec.Scope, oldQuota.Spec.Scope, field.NewPath("spec", "scope")),
		ValidateQuota(newQuota),
	)
}
