package corevalidation

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ---- kube-controller-manager ----

func validateKubeControllerManager(kcm *gardencore.KubeControllerManagerConfig, networking *gardencore.Networking,
	version string, workerless bool, path *field.Path) field.ErrorList {
	if kcm == nil {
		return nil
	}
	errs := validateFeatureGates(kcm.FeatureGates, version, path.Child("featureGates"))
	if workerless {
		return append(errs, validateWorkerlessControllerManager(kcm, path)...)
	}
	if networking != nil {
		errs = append(errs, validateNodeMaskSizes(kcm, networking.IPFamilies, path)...)
	}
	if timeoutPath := path.Child("podEvictionTimeout"); kcm.PodEvictionTimeout != nil && VersionAtLeast(version, "1.33") {
		errs = append(errs, field.Forbidden(timeoutPath, "must not be set from Kubernetes 1.33 on; it had no effect before"))
	} else {
		errs = append(errs, atLeastDuration(kcm.PodEvictionTimeout, 1, timeoutPath)...)
	}
	errs = append(errs, atLeastDuration(kcm.NodeMonitorGracePeriod, 1, path.Child("nodeMonitorGracePeriod"))...)
	return append(errs, Optional(kcm.HorizontalPodAutoscalerConfig, path.Child("horizontalPodAutoscaler"), validateHorizontalPodAutoscaler)...)
}

func validateWorkerlessControllerManager(kcm *gardencore.KubeControllerManagerConfig, path *field.Path) field.ErrorList {
	return slices.Concat(
		ForbiddenIf(kcm.NodeCIDRMaskSize != nil, path.Child("nodeCIDRMaskSize"), notForWorkerlessShoots),
		ForbiddenIf(kcm.NodeCIDRMaskSizeIPv6 != nil, path.Child("nodeCIDRMaskSizeIPv6"), notForWorkerlessShoots),
		ForbiddenIf(kcm.HorizontalPodAutoscalerConfig != nil, path.Child("horizontalPodAutoscaler"), notForWorkerlessShoots),
		ForbiddenIf(kcm.PodEvictionTimeout != nil, path.Child("podEvictionTimeout"), notForWorkerlessShoots),
		ForbiddenIf(kcm.NodeMonitorGracePeriod != nil, path.Child("nodeMonitorGracePeriod"), notForWorkerlessShoots),
	)
}

// validateNodeMaskSizes checks the mask sizes of the nodes' ranges. With IPv6 alone, either field may be set, but not
// both.
func validateNodeMaskSizes(kcm *gardencore.KubeControllerManagerConfig, families []gardencore.IPFamily, path *field.Path) field.ErrorList {
	const minIPv4, maxIPv4, minIPv6, maxIPv6 = 16, 28, 64, 124
	maskPath, maskIPv6Path := path.Child("nodeCIDRMaskSize"), path.Child("nodeCIDRMaskSizeIPv6")
	switch {
	case gardencore.IsIPv4SingleStack(families):
		return append(between(kcm.NodeCIDRMaskSize, minIPv4, maxIPv4, maskPath),
			ForbiddenIf(kcm.NodeCIDRMaskSizeIPv6 != nil, maskIPv6Path, "must not be set without IPv6")...)
	case gardencore.IsIPv6SingleStack(families):
		return slices.Concat(
			between(kcm.NodeCIDRMaskSize, minIPv6, maxIPv6, maskPath),
			between(kcm.NodeCIDRMaskSizeIPv6, minIPv6, maxIPv6, maskIPv6Path),
			ForbiddenIf(kcm.NodeCIDRMaskSize != nil && kcm.NodeCIDRMaskSizeIPv6 != nil, maskPath,
				"must not be set together with nodeCIDRMaskSizeIPv6 without IPv4"),
		)
	}
	return between(kcm.NodeCIDRMaskSizeIPv6, minIPv6, maxIPv6, maskIPv6Path)
}

func validateHorizontalPodAutoscaler(hpa gardencore.HorizontalPodAutoscalerConfig, path *field.Path) field.ErrorList {
	return slices.Concat(
		atLeastDuration(hpa.SyncPeriod, time.Second, path.Child("syncPeriod")),
		atLeastDuration(hpa.DownscaleStabilization, time.Second, path.Child("downscaleStabilization")),
		atLeastDuration(hpa.CPUInitializationPeriod, time.Second, path.Child("cpuInitializationPeriod")),
		atLeastDuration(hpa.InitialReadinessDelay, 1, path.Child("initialReadinessDelay")),
		InvalidIf(hpa.Tolerance != nil && *hpa.Tolerance <= 0, path.Child("tolerance"), hpa.Tolerance, "must be greater than 0"),
	)
}

// atLeastDuration refuses a duration that is shorter than least.
func atLeastDuration(duration *metav1.Duration, least time.Duration, path *field.Path) field.ErrorList {
	return InvalidIf(duration != nil && duration.Duration < least, path, duration, "must be at least "+least.String())
}

// ---- kube-scheduler ----

func validateKubeScheduler(scheduler *gardencore.KubeSchedulerConfig, version string, path *field.Path) field.ErrorList {
	if scheduler == nil {
		return nil
	}
	errs := validateFeatureGates(scheduler.FeatureGates, version, path.Child("featureGates"))
	errs = append(errs, SupportedIfSet(path.Child("profile"), scheduler.Profile, gardencore.SchedulingProfileBalanced,
		gardencore.SchedulingProfileBinPacking)...)
	volumes, volumesPath := scheduler.KubeMaxPDVols, path.Child("kubeMaxPDVols")
	switch {
	case volumes == nil:
		return errs
	case VersionAtLeast(version, "1.35"):
		return append(errs, field.Forbidden(volumesPath, "must not be set from Kubernetes 1.35 on"))
	}
	number, err := strconv.Atoi(*volumes)
	return append(errs, InvalidIf(err != nil || number < 1, volumesPath, *volumes, "must be a number greater than 0")...)
}

// ---- kube-proxy ----

func validateKubeProxy(proxy *gardencore.KubeProxyConfig, version string, path *field.Path) field.ErrorList {
	const featureGate = "NFTablesProxyMode"
	if proxy == nil {
		return nil
	}
	errs, modePath := validateFeatureGates(proxy.FeatureGates, version, path.Child("featureGates")), path.Child("mode")
	if proxy.Mode == nil {
		return append(errs, field.Required(modePath, "must be set if kubeProxy is"))
	}
	return slices.Concat(errs,
		Supported(modePath, *proxy.Mode, gardencore.ProxyModeIPTables, gardencore.ProxyModeIPVS, gardencore.ProxyModeNFTables),
		InvalidIf(*proxy.Mode == gardencore.ProxyModeNFTables && switchedOff(proxy.FeatureGates, featureGate), modePath,
			*proxy.Mode, "must not be set if the feature gate "+featureGate+" is switched off"),
	)
}
