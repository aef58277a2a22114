package seedmanagementvalidation

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfig "k8s.io/component-base/config"
	componentbasev1alpha1 "k8s.io/component-base/config/v1alpha1"
	componentbasevalidation "k8s.io/component-base/config/validation"
	"k8s.io/utils/ptr"

	"github.com/gardener/gardener/pkg/apis/config"
	gardenletv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// connectionRules are the way in which a gardenlet gets its kubeconfig for the garden. The allowed settings for the
// connection depend on it.
type connectionRules struct {
	bootstrap       gardenseedmanagement.Bootstrap
	mergeWithParent bool
}

// asConfiguration returns an embedded configuration, or nil if there is none.
func asConfiguration(object runtime.Object, path *field.Path) (*gardenletv1alpha1.GardenletConfiguration, field.ErrorList) {
	if object == nil {
		return nil, nil
	}
	configuration, ok := object.(*gardenletv1alpha1.GardenletConfiguration)
	if !ok {
		return nil, field.ErrorList{
			field.Invalid(path, fmt.Sprintf("%T", object), "must be a GardenletConfiguration of "+gardenletv1alpha1.SchemeGroupVersion.String())}
	}
	return configuration, nil
}

// validateConfiguration checks an embedded configuration. The configuration may be partial, because the gardenlet
// sets defaults.
func validateConfiguration(object runtime.Object, rules connectionRules, path *field.Path) field.ErrorList {
	configuration, errs := asConfiguration(object, path)
	if configuration == nil {
		return errs
	}
	return slices.Concat(
		validation.Optional(configuration.GardenClientConnection, path.Child("gardenClientConnection"), validateGardenClientConnection),
		validation.Optional(configuration.GardenClientConnection, path.Child("gardenClientConnection"), rules.validate),
		validation.Optional(configuration.SeedClientConnection, path.Child("seedClientConnection"),
			func(c gardenletv1alpha1.SeedClientConnection, path *field.Path) field.ErrorList {
				return validateClientConnection(&c.ClientConnectionConfiguration, path)
			}),
		validation.Optional(configuration.ShootClientConnection, path.Child("shootClientConnection"),
			func(c gardenletv1alpha1.ShootClientConnection, path *field.Path) field.ErrorList {
				return validateClientConnection(&c.ClientConnectionConfiguration, path)
			}),
		// In the errors for these three, Gardener uses the path within the configuration.
		validation.Optional(configuration.LeaderElection, field.NewPath("leaderElection"), validateLeaderElection),
		oneOf(configuration.LogLevel, field.NewPath("logLevel"), config.LogLevelDebug, config.LogLevelInfo, config.LogLevelError),
		oneOf(configuration.LogFormat, field.NewPath("logFormat"), config.LogFormatJSON, config.LogFormatText),
		validation.Optional(configuration.Controllers, path.Child("controllers"), validateControllers),
		validation.Optional(configuration.SeedConfig, path.Child("seedConfig"), validateSeedConfig),
		validation.Optional(configuration.Resources, path.Child("resources"), validateResources),
		validation.Optional(configuration.SNI, path.Child("sni"), validateSNI),
		validateExposureClassHandlers(configuration.ExposureClassHandlers, path.Child("exposureClassHandlers")),
		validation.Optional(configuration.NodeToleration, path.Child("nodeToleration"), validateNodeToleration),
	)
}

// validateConfigurationUpdate checks the changes of the seed in a configuration like those of a seed.
func validateConfigurationUpdate(newObject, oldObject runtime.Object, path *field.Path) field.ErrorList {
	if newObject == nil || oldObject == nil {
		return nil
	}
	newConfiguration, errs := asConfiguration(newObject, path)
	oldConfiguration, oldErrs := asConfiguration(oldObject, path)
	if newConfiguration == nil || oldConfiguration == nil {
		return append(errs, oldErrs...)
	}
	newSeed, oldSeed, seedPath := newConfiguration.SeedConfig, oldConfiguration.SeedConfig, path.Child("seedConfig")
	if newSeed == nil || oldSeed == nil {
		return nil
	}
	newTemplate, errs := seedTemplate(newSeed, seedPath)
	oldTemplate, oldErrs := seedTemplate(oldSeed, seedPath)
	if newTemplate == nil || oldTemplate == nil {
		return append(errs, oldErrs...)
	}
	return validation.ValidateSeedTemplateUpdate(newTemplate, oldTemplate, seedPath)
}

// oneOf refuses a value that is neither empty nor one of the allowed ones.
func oneOf(value string, path *field.Path, allowed ...string) field.ErrorList {
	if value == "" {
		return nil
	}
	return validation.Supported(path, value, allowed...)
}

func nonNegativeDuration(value *metav1.Duration, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return validation.NotNegative(&value.Duration, path)
}

// ---- connections ----

// validate checks that the connection has the kubeconfigs that it needs, and no others, for the kind of bootstrapping.
func (r connectionRules) validate(connection gardenletv1alpha1.GardenClientConnection, path *field.Path) field.ErrorList {
	const notBootstrapped = "must not be set without bootstrapping"
	var errs field.ErrorList
	switch kubeconfig := path.Child("kubeconfig"); r.bootstrap {
	case gardenseedmanagement.BootstrapServiceAccount, gardenseedmanagement.BootstrapToken:
		return validation.ForbiddenIf(connection.Kubeconfig != "", kubeconfig, "must not be set: the gardenlet is bootstrapped")
	case gardenseedmanagement.BootstrapNone:
		if connection.Kubeconfig == "" && !r.mergeWithParent {
			errs = append(errs, field.Required(kubeconfig, "must be set without bootstrapping and merging with the parent's configuration"))
		}
		errs = append(errs, validation.ForbiddenIf(connection.BootstrapKubeconfig != nil, path.Child("bootstrapKubeconfig"), notBootstrapped)...)
		errs = append(errs, validation.ForbiddenIf(connection.KubeconfigSecret != nil, path.Child("kubeconfigSecret"), notBootstrapped)...)
	}
	return errs
}

func validateGardenClientConnection(connection gardenletv1alpha1.GardenClientConnection, path *field.Path) field.ErrorList {
	return append(
		validateClientConnection(&connection.ClientConnectionConfiguration, path),
		validation.Optional(connection.KubeconfigValidity, path.Child("kubeconfigValidity"), validateKubeconfigValidity)...,
	)
}

func validateClientConnection(connection *componentbasev1alpha1.ClientConnectionConfiguration, path *field.Path) field.ErrorList {
	return componentbasevalidation.ValidateClientConnectionConfiguration(
		&componentbaseconfig.ClientConnectionConfiguration{Burst: connection.Burst}, path)
}

func validateKubeconfigValidity(validity gardenletv1alpha1.KubeconfigValidity, path *field.Path) field.ErrorList {
	const shortest = 10 * time.Minute
	var errs field.ErrorList
	if v := validity.Validity; v != nil && v.Duration < shortest {
		errs = append(errs, field.Invalid(path.Child("validity"), v.Duration.String(), fmt.Sprintf("must be at least %s", shortest)))
	}
	least, most := ptr.Deref(validity.AutoRotationJitterPercentageMin, 1), ptr.Deref(validity.AutoRotationJitterPercentageMax, 100)
	bothSet := validity.AutoRotationJitterPercentageMin != nil && validity.AutoRotationJitterPercentageMax != nil
	leastPath := path.Child("autoRotationJitterPercentageMin")
	return slices.Concat(errs,
		validation.InvalidIf(least < 1, leastPath, least, "must be at least 1"),
		validation.InvalidIf(most > 100, path.Child("autoRotationJitterPercentageMax"), most, "must be at most 100"),
		validation.InvalidIf(bothSet && least >= most, leastPath, least, "must be less than autoRotationJitterPercentageMax"),
	)
}

func validateLeaderElection(election componentbasev1alpha1.LeaderElectionConfiguration, path *field.Path) field.ErrorList {
	return componentbasevalidation.ValidateLeaderElectionConfiguration(&componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       ptr.Deref(election.LeaderElect, false),
		LeaseDuration:     election.LeaseDuration,
		RenewDeadline:     election.RenewDeadline,
		RetryPeriod:       election.RetryPeriod,
		ResourceLock:      election.ResourceLock,
		ResourceName:      election.ResourceName,
		ResourceNamespace: election.ResourceNamespace,
	}, path)
}

// ---- the seed ----

// validateSeedConfig checks the seed that the gardenlet registers. The configuration must not set its name.
func validateSeedConfig(seed gardenletv1alpha1.SeedConfig, path *field.Path) field.ErrorList {
	errs := validation.ForbiddenIf(seed.Name != "", path.Child("metadata", "name"), "must not be set: the seed gets the name of this object")
	template, conversionErrs := seedTemplate(&seed, path)
	if template == nil {
		return append(errs, conversionErrs...)
	}
	return append(errs, validation.ValidateSeedTemplate(template, path)...)
}

// seedTemplate converts the template of a seed to the internal version.
func seedTemplate(seed *gardenletv1alpha1.SeedConfig, path *field.Path) (*gardencore.SeedTemplate, field.ErrorList) {
	template := &gardencore.SeedTemplate{ObjectMeta: seed.ObjectMeta}
	if err := scheme.Scheme.Convert(&seed.Spec, &template.Spec, nil); err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", fmt.Sprintf("must be convertible to the internal version: %v", err))}
	}
	return template, nil
}

func validateResources(resources gardenletv1alpha1.ResourcesConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(resources.Reserved)) {
		reserved, reservedPath := resources.Reserved[name], path.Child("reserved", string(name))
		if capacity, ok := resources.Capacity[name]; !ok {
			errs = append(errs, field.Invalid(reservedPath, reserved.String(), "must not be set without a capacity"))
		} else if reserved.Value() > capacity.Value() {
			errs = append(errs, field.Invalid(reservedPath, reserved.String(), "must not be more than the capacity "+capacity.String()))
		}
	}
	return errs
}

func validateNodeToleration(toleration gardenletv1alpha1.NodeToleration, path *field.Path) field.ErrorList {
	return append(
		validation.NotNegative(toleration.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds")),
		validation.NotNegative(toleration.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds"))...,
	)
}

// ---- exposure ----

func validateSNI(sni gardenletv1alpha1.SNI, path *field.Path) field.ErrorList {
	if sni.Ingress == nil {
		return nil
	}
	return validation.Optional(sni.Ingress.ServiceExternalIP, path.Child("ingress", "serviceExternalIP"),
		func(ip string, path *field.Path) field.ErrorList {
			return validation.InvalidIf(net.ParseIP(ip) == nil, path, ip, "must be an IP address")
		})
}

func validateExposureClassHandlers(handlers []gardenletv1alpha1.ExposureClassHandler, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, handler := range handlers {
		idxPath := path.Index(i)
		errs = slices.Concat(errs,
			validation.InvalidEach(idxPath.Child("name"), handler.Name, utilvalidation.IsDNS1123Label(handler.Name)),
			validation.Optional(handler.LoadBalancerService.Class, idxPath.Child("loadBalancerService", "class"), validateLoadBalancerClass),
			validation.Optional(handler.SNI, idxPath.Child("sni"), validateSNI),
		)
	}
	return errs
}

func validateLoadBalancerClass(class string, path *field.Path) field.ErrorList {
	return validation.InvalidEach(path, class, utilvalidation.IsQualifiedName(class))
}
