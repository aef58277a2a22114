package corevalidation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateKubeletConfig checks the kubelet configuration for a Kubernetes version.
func ValidateKubeletConfig(kubelet gardencore.KubeletConfig, version string, path *field.Path) field.ErrorList {
	const minPodPIDs = 100
	return slices.Concat(
		SupportedIfSet(path.Child("cpuManagerPolicy"), kubelet.CPUManagerPolicy, "none", "static"),
		NotNegative(kubelet.MaxPods, path.Child("maxPods")),
		InvalidIf(kubelet.PodPIDsLimit != nil && *kubelet.PodPIDsLimit < minPodPIDs, path.Child("podPIDsLimit"),
			kubelet.PodPIDsLimit, fmt.Sprintf("must be at least %d", minPodPIDs)),
		validateKubeletEviction(kubelet, path),
		Optional(kubelet.KubeReserved, path.Child("kubeReserved"), validateKubeletReserved),
		validateImageGarbageCollection(kubelet, path),
		validateFeatureGates(kubelet.FeatureGates, version, path.Child("featureGates")),
		validateImagePulls(kubelet, path),
		validateImageVerification(kubelet, version, path),
		InvalidIf(kubelet.ContainerLogMaxFiles != nil && *kubelet.ContainerLogMaxFiles < 2, path.Child("containerLogMaxFiles"),
			kubelet.ContainerLogMaxFiles, "must be at least 2"),
		optionalQuantity(kubelet.ContainerLogMaxSize, path.Child("containerLogMaxSize")),
		Optional(kubelet.StreamingConnectionIdleTimeout, path.Child("streamingConnectionIdleTimeout"), validateStreamingTimeout),
		validateMemorySwap(kubelet, path.Child("memorySwap")),
	)
}

func validateStreamingTimeout(timeout metav1.Duration, path *field.Path) field.ErrorList {
	return between(&timeout.Duration, 30*time.Second, 4*time.Hour, path)
}

// validateMemorySwap refuses swap settings with which the kubelet would not start.
func validateMemorySwap(kubelet gardencore.KubeletConfig, path *field.Path) field.ErrorList {
	swap := kubelet.MemorySwap
	if swap == nil {
		return nil
	}
	errs := ForbiddenIf(ptr.Deref(kubelet.FailSwapOn, false), path, "must not be set if failSwapOn is true")
	if swap.SwapBehavior == nil {
		return errs
	}
	errs = append(errs, ForbiddenIf(!kubelet.FeatureGates["NodeSwap"], path,
		"must not have a swapBehavior unless the feature gate NodeSwap is switched on")...)
	return append(errs, Supported(path.Child("swapBehavior"), *swap.SwapBehavior, gardencore.NoSwap, gardencore.LimitedSwap)...)
}

// ---- eviction and reservation ----

// validateKubeletEviction checks the eviction thresholds. As in Gardener, it does not check the thresholds for inodes
// of the node's file system.
func validateKubeletEviction(kubelet gardencore.KubeletConfig, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateNotNegativeDuration(kubelet.EvictionPressureTransitionPeriod, path.Child("evictionPressureTransitionPeriod")),
		NotNegative(kubelet.EvictionMaxPodGracePeriod, path.Child("evictionMaxPodGracePeriod")),
		Optional(kubelet.EvictionHard, path.Child("evictionHard"), validateEvictionThresholds),
		Optional(kubelet.EvictionSoft, path.Child("evictionSoft"), validateEvictionThresholds),
	)
	if reclaim, reclaimPath := kubelet.EvictionMinimumReclaim, path.Child("evictionMinimumReclaim"); reclaim != nil {
		errs = slices.Concat(errs,
			optionalQuantity(reclaim.MemoryAvailable, reclaimPath.Child("memoryAvailable")),
			optionalQuantity(reclaim.ImageFSAvailable, reclaimPath.Child("imagefsAvailable")),
			optionalQuantity(reclaim.ImageFSInodesFree, reclaimPath.Child("imagefsInodesFree")),
			optionalQuantity(reclaim.NodeFSAvailable, reclaimPath.Child("nodefsAvailable")),
		)
	}
	if grace, gracePath := kubelet.EvictionSoftGracePeriod, path.Child("evictionSoftGracePeriod"); grace != nil {
		errs = slices.Concat(errs,
			validateNotNegativeDuration(grace.MemoryAvailable, gracePath.Child("memoryAvailable")),
			validateNotNegativeDuration(grace.ImageFSAvailable, gracePath.Child("imagefsAvailable")),
			validateNotNegativeDuration(grace.ImageFSInodesFree, gracePath.Child("imagefsInodesFree")),
			validateNotNegativeDuration(grace.NodeFSAvailable, gracePath.Child("nodefsAvailable")),
		)
	}
	return errs
}

func validateEvictionThresholds(thresholds gardencore.KubeletConfigEviction, path *field.Path) field.ErrorList {
	return slices.Concat(
		Optional(thresholds.MemoryAvailable, path.Child("memoryAvailable"), validateQuantityOrPercentage),
		Optional(thresholds.ImageFSAvailable, path.Child("imagefsAvailable"), validateQuantityOrPercentage),
		Optional(thresholds.ImageFSInodesFree, path.Child("imagefsInodesFree"), validateQuantityOrPercentage),
		Optional(thresholds.NodeFSAvailable, path.Child("nodefsAvailable"), validateQuantityOrPercentage),
	)
}

func validateQuantityOrPercentage(value string, path *field.Path) field.ErrorList {
	if quantity, err := resource.ParseQuantity(value); err == nil && quantity.Sign() >= 0 {
		return nil
	}
	percent, ok := percentage(intstr.FromString(value))
	return InvalidIf(!ok || percent > 100, path, value, "must be a quantity like 200Mi or a percentage like 5%")
}

func validateKubeletReserved(reserved gardencore.KubeletConfigReserved, path *field.Path) field.ErrorList {
	return slices.Concat(
		optionalQuantity(reserved.CPU, path.Child("cpu")),
		optionalQuantity(reserved.Memory, path.Child("memory")),
		optionalQuantity(reserved.EphemeralStorage, path.Child("ephemeralStorage")),
		optionalQuantity(reserved.PID, path.Child("pid")),
	)
}

// ---- images ----

func validateImageGarbageCollection(kubelet gardencore.KubeletConfig, path *field.Path) field.ErrorList {
	high, low, lowPath := kubelet.ImageGCHighThresholdPercent, kubelet.ImageGCLowThresholdPercent, path.Child("imageGCLowThresholdPercent")
	return slices.Concat(
		Optional(kubelet.ImageMinimumGCAge, path.Child("imageMinimumGCAge"), notNegativeSeconds),
		Optional(kubelet.ImageMaximumGCAge, path.Child("imageMaximumGCAge"), notNegativeSeconds),
		between(high, 0, 100, path.Child("imageGCHighThresholdPercent")),
		between(low, 0, 100, lowPath),
		ForbiddenIf(high != nil && low != nil && *low >= *high, lowPath, "must be less than imageGCHighThresholdPercent"),
	)
}

// notNegativeSeconds refuses a negative duration. It ignores fractions of a second.
func notNegativeSeconds(duration metav1.Duration, path *field.Path) field.ErrorList {
	seconds := int64(duration.Truncate(time.Second))
	return NotNegative(&seconds, path)
}

func validateImagePulls(kubelet gardencore.KubeletConfig, path *field.Path) field.ErrorList {
	parallel, parallelPath := ptr.Deref(kubelet.MaxParallelImagePulls, 1), path.Child("maxParallelImagePulls")
	return slices.Concat(
		NotNegative(kubelet.RegistryPullQPS, path.Child("registryPullQPS")),
		NotNegative(kubelet.RegistryBurst, path.Child("registryBurst")),
		InvalidIf(parallel < 1, parallelPath, parallel, "must be at least 1"),
		ForbiddenIf(parallel > 1 && ptr.Deref(kubelet.SerializeImagePulls, false), parallelPath,
			"must not be greater than 1 if serializeImagePulls is true"),
	)
}

// validateImageVerification checks the settings for which images on the node the kubelet verifies that a pod may use
// them.
func validateImageVerification(kubelet gardencore.KubeletConfig, version string, path *field.Path) field.ErrorList {
	const featureGate = "KubeletEnsureSecretPulledImages"
	var errs field.ErrorList
	policy, policyPath := kubelet.ImagePullCredentialsVerificationPolicy, path.Child("imagePullCredentialsVerificationPolicy")
	if policy != nil {
		errs = slices.Concat(
			ForbiddenIf(versionBefore(version, "1.35"), policyPath, "must not be set before Kubernetes 1.35"),
			ForbiddenIf(switchedOff(kubelet.FeatureGates, featureGate), policyPath,
				"must not be set if the feature gate "+featureGate+" is switched off"),
			Supported(policyPath, *policy, gardencore.NeverVerify, gardencore.NeverVerifyPreloadedImages,
				gardencore.NeverVerifyAllowlistedImages, gardencore.AlwaysVerify),
		)
	}
	allowlist, allowlistPath := kubelet.PreloadedImagesVerificationAllowlist, path.Child("preloadedImagesVerificationAllowlist")
	if allowlist == nil {
		return errs
	}
	if ptr.Deref(policy, "") != gardencore.NeverVerifyAllowlistedImages {
		return append(errs, field.Forbidden(
			allowlistPath, fmt.Sprintf("must not be set unless the policy is %s", gardencore.NeverVerifyAllowlistedImages)))
	}
	for i, pattern := range allowlist {
		if err := checkImagePattern(pattern); err != nil {
			errs = append(errs, field.Invalid(allowlistPath.Index(i), pattern, err.Error()))
		}
	}
	return errs
}

// checkImagePattern accepts the same patterns as the kubelet: the name of an image without tag and digest, or a
// prefix of names followed by /*.
func checkImagePattern(pattern string) error {
	prefix, wildcard := strings.CutSuffix(pattern, "/*")
	switch {
	case strings.TrimSpace(pattern) != pattern:
		return errors.New("must not begin or end with space")
	case prefix == "":
		return errors.New("must name a registry or an image")
	case strings.Contains(prefix, "*"):
		return errors.New("must not have a star except in /* at the end")
	case wildcard:
		return nil
	}
	image, err := reference.Parse(pattern)
	if err != nil {
		return fmt.Errorf("must be the name of an image or end with /*: %w", err)
	}
	_, tagged := image.(reference.Tagged)
	_, digested := image.(reference.Digested)
	if tagged || digested {
		return errors.New("must not have a tag or a digest")
	}
	return nil
}
