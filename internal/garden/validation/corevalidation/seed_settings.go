package corevalidation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// validateSeedSettings checks the settings of a seed in the given zones.
func validateSeedSettings(settings *gardencore.SeedSettings, zones []string, path *field.Path) field.ErrorList {
	if settings == nil {
		return nil
	}
	var errs field.ErrorList
	if reservation := settings.ExcessCapacityReservation; reservation != nil {
		errs = append(errs, validateExcessCapacity(reservation.Configs, path.Child("excessCapacityReservation", "configs"))...)
	}
	if services := settings.LoadBalancerServices; services != nil {
		errs = append(errs, validateLoadBalancerServices(services, zones, path.Child("loadBalancerServices"))...)
	}
	if autoscaler := settings.VerticalPodAutoscaler; autoscaler != nil {
		autoscalerPath := path.Child("verticalPodAutoscaler")
		errs = append(errs, validateScaledResources(autoscaler.MaxAllowed, nil, autoscalerPath.Child("maxAllowed"))...)
		errs = append(errs, validateVPAFeatureGates(autoscaler.FeatureGates, autoscalerPath.Child("featureGates"),
			"must be one of the feature gates "+strings.Join(vpaFeatureGates, ", "))...)
	}
	if selection := settings.ZoneSelection; selection != nil {
		selectionPath := path.Child("zoneSelection")
		errs = append(errs, ForbiddenIf(len(zones) == 0, selectionPath, "must not be set unless spec.provider.zones is")...)
		errs = append(errs, Supported(selectionPath.Child("mode"), selection.Mode, gardencore.ZoneSelectionModePrefer,
			gardencore.ZoneSelectionModeEnforce)...)
	}
	if routing := settings.TopologyAwareRouting; routing != nil && routing.Enabled && len(zones) <= 1 {
		errs = append(errs, field.Forbidden(path.Child("topologyAwareRouting", "enabled"),
			"must not be true unless spec.provider.zones has two or more entries"))
	}
	return errs
}

func validateExcessCapacity(configs []gardencore.SeedSettingExcessCapacityReservationConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, config := range configs {
		resourcesPath := path.Index(i).Child("resources")
		errs = append(errs, RequiredIf(len(config.Resources) == 0, resourcesPath, "must not be empty")...)
		for _, name := range slices.Sorted(maps.Keys(config.Resources)) {
			errs = append(errs, validateQuantity(name, config.Resources[name], resourcesPath.Child(string(name)))...)
		}
		errs = append(errs, validatePodTolerations(config.Tolerations, path.Index(i).Child("tolerations"))...)
	}
	return errs
}

// ---- load balancers ----

// validateLoadBalancerServices checks the settings of load balancers. Settings per zone are allowed only if the seed
// has several zones, and at most once for each of its zones.
func validateLoadBalancerServices(services *gardencore.SeedSettingLoadBalancerServices, zones []string, path *field.Path) field.ErrorList {
	errs := validateLoadBalancer(services.Annotations, services.ExternalTrafficPolicy, path)
	if services.Class != nil {
		errs = append(errs, InvalidEach(path.Child("class"), *services.Class, validation.IsQualifiedName(*services.Class))...)
	}
	zonesPath := path.Child("zones")
	errs = append(errs, ForbiddenIf(len(services.Zones) > 0 && len(zones) <= 1, zonesPath,
		"must not be set unless spec.provider.zones has two or more entries")...)
	seen := sets.New[string]()
	for i, zone := range services.Zones {
		namePath := zonesPath.Index(i).Child("name")
		if !slices.Contains(zones, zone.Name) {
			errs = append(errs, field.NotFound(namePath, zone.Name))
		}
		errs = append(errs, Distinct(namePath, seen, zone.Name)...)
		errs = append(errs, validateLoadBalancer(zone.Annotations, zone.ExternalTrafficPolicy, zonesPath.Index(i))...)
	}
	return errs
}

func validateLoadBalancer(annotations map[string]string, policy *corev1.ServiceExternalTrafficPolicy, path *field.Path) field.ErrorList {
	return append(
		apivalidation.ValidateAnnotations(annotations, path.Child("annotations")),
		validateExternalTrafficPolicy(policy, path.Child("externalTrafficPolicy"))...,
	)
}

func validateExternalTrafficPolicy(policy *corev1.ServiceExternalTrafficPolicy, path *field.Path) field.ErrorList {
	return SupportedIfSet(path, policy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
}

// ---- tolerations of pods ----

// validatePodTolerations checks tolerations like Kubernetes checks those of pods.
func validatePodTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		idxPath := path.Index(i)
		operatorPath, effectPath := idxPath.Child("operator"), idxPath.Child("effect")
		if toleration.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, idxPath.Child("key"))...)
		} else if toleration.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(operatorPath, toleration.Operator, "must be Exists if there is no key"))
		}
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(effectPath, toleration.Effect, "must be NoExecute if tolerationSeconds is set"))
		}
		switch toleration.Operator {
		case corev1.TolerationOpEqual, "":
			if messages := validation.IsValidLabelValue(toleration.Value); len(messages) > 0 {
				errs = append(errs, field.Invalid(operatorPath, toleration.Value, strings.Join(messages, "; ")))
			}
		case corev1.TolerationOpExists:
			errs = append(errs, InvalidIf(toleration.Value != "", operatorPath, toleration.Value, "must not be Exists if there is a value")...)
		default:
			errs = append(errs, field.NotSupported(operatorPath, toleration.Operator,
				[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if toleration.Effect != "" {
			errs = append(errs, Supported(effectPath, toleration.Effect, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule,
				corev1.TaintEffectPreferNoSchedule)...)
		}
	}
	return errs
}
