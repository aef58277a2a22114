package corevalidation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ---- cluster-autoscaler ----

func validateClusterAutoscaler(autoscaler *gardencore.ClusterAutoscaler, version string, path *field.Path) field.ErrorList {
	if autoscaler == nil {
		return nil
	}
	return slices.Concat(
		validateNotNegativeDuration(autoscaler.ScaleDownDelayAfterAdd, path.Child("scaleDownDelayAfterAdd")),
		validateNotNegativeDuration(autoscaler.ScaleDownDelayAfterDelete, path.Child("scaleDownDelayAfterDelete")),
		validateNotNegativeDuration(autoscaler.ScaleDownDelayAfterFailure, path.Child("scaleDownDelayAfterFailure")),
		validateNotNegativeDuration(autoscaler.ScaleDownUnneededTime, path.Child("scaleDownUnneededTime")),
		between(autoscaler.ScaleDownUtilizationThreshold, 0, 1, path.Child("scaleDownUtilizationThreshold")),
		validateNotNegativeDuration(autoscaler.ScanInterval, path.Child("scanInterval")),
		Optional(autoscaler.Expander, path.Child("expander"), validateExpander),
		validateNotNegativeDuration(autoscaler.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime")),
		NotNegative(autoscaler.MaxGracefulTerminationSeconds, path.Child("maxGracefulTerminationSeconds")),
		validateAutoscalerTaints(autoscaler.StartupTaints, "StartupTaints", versionRange{added: "1.29"}, version, path.Child("startupTaints")),
		validateAutoscalerTaints(autoscaler.StatusTaints, "StatusTaints", versionRange{added: "1.29"}, version, path.Child("statusTaints")),
		validateAutoscalerTaints(autoscaler.IgnoreTaints, "IgnoreTaints", versionRange{added: "1.14", removed: "1.32"},
			version, path.Child("ignoreTaints")),
		validateNotNegativeDuration(autoscaler.NewPodScaleUpDelay, path.Child("newPodScaleUpDelay")),
		validateEmptyBulkDelete(autoscaler, version, path.Child("maxEmptyBulkDelete")),
		NotNegative(autoscaler.MaxScaleDownParallelism, path.Child("maxScaleDownParallelism")),
		NotNegative(autoscaler.MaxDrainParallelism, path.Child("maxDrainParallelism")),
		NotNegative(autoscaler.Verbosity, path.Child("verbosity")),
		validateNotNegativeDuration(autoscaler.InitialNodeGroupBackoffDuration, path.Child("initialNodeGroupBackoffDuration")),
		validateNotNegativeDuration(autoscaler.MaxNodeGroupBackoffDuration, path.Child("maxNodeGroupBackoffDuration")),
		validateNotNegativeDuration(autoscaler.NodeGroupBackoffResetTimeout, path.Child("nodeGroupBackoffResetTimeout")),
		validateNotNegativeDuration(autoscaler.MaxBinpackingTime, path.Child("maxBinpackingTime")),
		validateControlPlaneAutoscaling(autoscaler.Autoscaling,
			resourceMinimum{corev1.ResourceCPU: "10m", corev1.ResourceMemory: "30M"}, path.Child("autoscaling")),
	)
}

// validateExpander checks that expander is a comma-separated list of known expanders.
func validateExpander(expander gardencore.ExpanderMode, path *field.Path) field.ErrorList {
	for mode := range strings.SplitSeq(string(expander), ",") {
		if errs := Supported(path, gardencore.ExpanderMode(mode), gardencore.ClusterAutoscalerExpanderLeastNodes,
			gardencore.ClusterAutoscalerExpanderLeastWaste,
			gardencore.ClusterAutoscalerExpanderMostPods, gardencore.ClusterAutoscalerExpanderPriority,
			gardencore.ClusterAutoscalerExpanderRandom); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// validateEmptyBulkDelete checks maxEmptyBulkDelete, the old name of maxScaleDownParallelism. They must not
// contradict each other.
func validateEmptyBulkDelete(autoscaler *gardencore.ClusterAutoscaler, version string, path *field.Path) field.ErrorList {
	old, parallelism := autoscaler.MaxEmptyBulkDelete, autoscaler.MaxScaleDownParallelism
	if old == nil {
		return nil
	}
	return slices.Concat(
		ForbiddenIf(VersionAtLeast(version, "1.33"), path, "must not be set from Kubernetes 1.33 on; use maxScaleDownParallelism"),
		NotNegative(old, path),
		InvalidIf(parallelism != nil && *parallelism != *old, path, *old, "must be equal to maxScaleDownParallelism"),
	)
}

// validateAutoscalerTaints checks that the taint keys are valid and distinct, and that the cluster-autoscaler of this
// version supports the option. The path of an unsupported option contains its name twice, as in Gardener.
func validateAutoscalerTaints(taints []string, option string, r versionRange, version string, path *field.Path) field.ErrorList {
	if taints == nil {
		return nil
	}
	var errs field.ErrorList
	if err := unsupportedIn(r, version, path.Child(option), option); err != nil {
		errs = append(errs, err)
	}
	seen := sets.New[string]()
	for i, taint := range taints {
		idxPath := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint, idxPath)...)
		errs = append(errs, ForbiddenIf(taint == constants.TaintNodeCriticalComponentsNotReady, idxPath, "is reserved for Gardener")...)
		errs = append(errs, Distinct(idxPath, seen, taint)...)
	}
	return errs
}

// ValidateClusterAutoscalerOptionsForWorker checks the cluster-autoscaler options of a worker pool.
func ValidateClusterAutoscalerOptionsForWorker(options *gardencore.ClusterAutoscalerOptions, path *field.Path) field.ErrorList {
	return slices.Concat(
		between(options.ScaleDownUtilizationThreshold, 0, 1, path.Child("scaleDownUtilizationThreshold")),
		between(options.ScaleDownGpuUtilizationThreshold, 0, 1, path.Child("scaleDownGpuUtilizationThreshold")),
		validateNotNegativeDuration(options.ScaleDownUnneededTime, path.Child("scaleDownUnneededTime")),
		validateNotNegativeDuration(options.ScaleDownUnreadyTime, path.Child("scaleDownUnreadyTime")),
		validateNotNegativeDuration(options.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime")),
	)
}

// ---- vertical-pod-autoscaler ----

func validateVerticalPodAutoscaler(vpa gardencore.VerticalPodAutoscaler, path *field.Path) field.ErrorList {
	return slices.Concat(
		validateNotNegativeDuration(vpa.EvictAfterOOMThreshold, path.Child("evictAfterOOMThreshold")),
		NotNegative(vpa.EvictionRateBurst, path.Child("evictionRateBurst")),
		validateFraction(vpa.EvictionTolerance, path.Child("evictionTolerance")),
		validateFraction(vpa.RecommendationMarginFraction, path.Child("recommendationMarginFraction")),
		validateNotNegativeDuration(vpa.UpdaterInterval, path.Child("updaterInterval")),
		validateNotNegativeDuration(vpa.RecommenderInterval, path.Child("recommenderInterval")),
		between(vpa.TargetCPUPercentile, 0, 1, path.Child("targetCPUPercentile")),
		between(vpa.RecommendationLowerBoundCPUPercentile, 0, 1, path.Child("recommendationLowerBoundCPUPercentile")),
		between(vpa.RecommendationUpperBoundCPUPercentile, 0, 1, path.Child("recommendationUpperBoundCPUPercentile")),
		between(vpa.TargetMemoryPercentile, 0, 1, path.Child("targetMemoryPercentile")),
		between(vpa.RecommendationLowerBoundMemoryPercentile, 0, 1, path.Child("recommendationLowerBoundMemoryPercentile")),
		between(vpa.RecommendationUpperBoundMemoryPercentile, 0, 1, path.Child("recommendationUpperBoundMemoryPercentile")),
		validateNotNegativeDuration(vpa.CPUHistogramDecayHalfLife, path.Child("cpuHistogramDecayHalfLife")),
		validateNotNegativeDuration(vpa.MemoryHistogramDecayHalfLife, path.Child("memoryHistogramDecayHalfLife")),
		validateNotNegativeDuration(vpa.MemoryAggregationInterval, path.Child("memoryAggregationInterval")),
		NotNegative(vpa.MemoryAggregationIntervalCount, path.Child("memoryAggregationIntervalCount")),
		validateVPAFeatureGates(vpa.FeatureGates, path.Child("featureGates"), "is not a feature gate of the vertical pod autoscaler"),
		validateScaledResources(vpa.MaxAllowed, nil, path.Child("maxAllowed")),
		InvalidIf(vpa.RecommenderUpdateWorkerCount != nil && *vpa.RecommenderUpdateWorkerCount <= 0,
			path.Child("recommenderUpdateWorkerCount"), vpa.RecommenderUpdateWorkerCount, "must be greater than 0"),
	)
}

// vpaFeatureGates are the feature gates of the vertical pod autoscaler v1.7.
var vpaFeatureGates = []string{"CPUStartupBoost", "InPlace", "PerVPAConfig"}

// validateVPAFeatureGates returns an error for only one of several unknown feature gates, as Gardener does.
func validateVPAFeatureGates(gates map[string]bool, path *field.Path, detail string) field.ErrorList {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if !slices.Contains(vpaFeatureGates, name) {
			return field.ErrorList{field.Invalid(path.Child(name), name, detail)}
		}
	}
	return nil
}

func validateFraction(value *float64, path *field.Path) field.ErrorList {
	return InvalidIf(value != nil && (*value < 0 || *value >= 1), path, value, "must be at least 0 and less than 1")
}

// ---- scaling the control plane ----

// resourceMinimum is the minimum of each resource that a component needs.
type resourceMinimum map[corev1.ResourceName]string

func validateControlPlaneAutoscaling(autoscaling *gardencore.ControlPlaneAutoscaling, minimum resourceMinimum,
	path *field.Path) field.ErrorList {
	if autoscaling == nil {
		return nil
	}
	minAllowedPath := path.Child("minAllowed")
	if len(autoscaling.MinAllowed) == 0 {
		return field.ErrorList{field.Required(minAllowedPath, "must name a resource")}
	}
	return validateScaledResources(autoscaling.MinAllowed, minimum, minAllowedPath)
}

// validateScaledResources checks that the resources are CPU and memory, and not below the minimum.
func validateScaledResources(resources corev1.ResourceList, minimum resourceMinimum, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		namePath, quantity := path.Child(string(name)), resources[name]
		errs = append(errs, Supported(namePath, name, corev1.ResourceCPU, corev1.ResourceMemory)...)
		if least, ok := minimum[name]; ok {
			errs = append(errs, InvalidIf(quantity.Cmp(resource.MustParse(least)) < 0, namePath, quantity.String(), "must be at least "+least)...)
		}
		errs = append(errs, validateQuantity(name, quantity, namePath)...)
	}
	return errs
}

// between refuses a value outside of the bounds. The bounds themselves are allowed.
func between[T cmp.Ordered](value *T, low, high T, path *field.Path) field.ErrorList {
	if value == nil || low <= *value && *value <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be between %v and %v", low, high))}
}
