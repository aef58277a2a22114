package managedseedvalidator

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateShoot checks that the Shoot can become a seed.
func validateShoot(shoot *gardencore.Shoot) field.ErrorList {
	var errs field.ErrorList
	refuse := func(unfit bool, message string) {
		if unfit {
			errs = append(errs, field.Invalid(shootNamePath, shoot.Name, message))
		}
	}
	vpa := shoot.Spec.Kubernetes.VerticalPodAutoscaler
	refuse(shoot.Spec.DNS == nil || ptr.Deref(shoot.Spec.DNS.Domain, "") == "", "is a Shoot without a domain")
	refuse(validation.NginxIngressEnabled(shoot.Spec.Addons),
		"is a Shoot with the ingress add-on; a seed has an ingress controller of its own")
	refuse(vpa == nil || !vpa.Enabled, "is a Shoot without the vertical pod autoscaler, which a seed needs")
	refuse(shootcommon.Workerless(shoot), "is a Shoot without workers; a seed needs nodes")
	refuse(shoot.Spec.Networking == nil, "is a Shoot without networks")
	return errs
}

// validateUnused checks that no other ManagedSeed refers to the Shoot.
func validateUnused(ctx context.Context, deps plugin.Dependencies, seed *seedmanagement.ManagedSeed) (field.ErrorList, error) {
	name := seed.Spec.Shoot.Name
	others, err := plugin.List[*seedmanagement.ManagedSeed](ctx, deps.Reader, seedmanagement.Resource("managedseeds"), seed.Namespace,
		fields.OneTermEqualSelector(seedmanagement.ManagedSeedShootName, name))
	if err != nil {
		return nil, fmt.Errorf("listing the ManagedSeeds of Shoot %s/%s: %v", seed.Namespace, name, err)
	}
	for _, other := range others {
		if hasShoot(other) && other.Spec.Shoot.Name == name && other.Name != seed.Name {
			return field.ErrorList{
				field.Invalid(shootNamePath, name, fmt.Sprintf("is a seed already, by the ManagedSeed %s/%s", other.Namespace, other.Name))}, nil
		}
	}
	return nil, nil
}

// validateTemplate compares the seed template of a ManagedSeed with the Shoot and with the old template; old is nil for
// a new ManagedSeed.
func validateTemplate(ctx context.Context, deps plugin.Dependencies, seed, old *seedmanagement.ManagedSeed,
	shoot *gardencore.Shoot) (
	field.ErrorList, error) {
	spec, err := seedSpec(seed)
	if err != nil {
		return nil, err
	}
	errs, zones := validateSeedSpec(spec, shoot), spec.Provider.Zones
	if old != nil {
		oldSpec, err := seedSpec(old)
		if err != nil {
			return errs, err
		}
		changes, err := seedcommon.ValidateChange(ctx, deps.Reader, deps.Kube, seed.Name, spec, oldSpec, seedSpecPath)
		if err != nil {
			return nil, err
		}
		errs = append(errs, changes...)
		// Zone names used not to be compared with the Shoot's, so zones that the seed already has stay allowed.
		zones = sets.New(zones...).Delete(oldSpec.Provider.Zones...).UnsortedList()
	}
	if !shootcommon.WorkerZones(shoot).HasAll(zones...) {
		errs = append(errs, field.Invalid(seedSpecPath.Child("provider", "zones"), zones, "must be zones of the Shoot's workers"))
	}
	return errs, nil
}

// seedSpec returns the spec of the seed template of a ManagedSeed, or a field error if there is none.
func seedSpec(seed *seedmanagement.ManagedSeed) (*gardencore.SeedSpec, error) {
	if seed.Spec.Gardenlet.Config == nil {
		return nil, field.Required(configPath, "must be set")
	}
	config, err := configuration(seed.Spec.Gardenlet.Config)
	if err != nil {
		return nil, err
	}
	if config.SeedConfig == nil {
		return nil, field.Required(seedPath, "must be set: it is the template of the seed")
	}
	return toInternal(&config.SeedConfig.SeedTemplate)
}

// validateSeedSpec checks that the seed has the domain, networks and provider of the Shoot.
func validateSeedSpec(spec *gardencore.SeedSpec, shoot *gardencore.Shoot) field.ErrorList {
	var (
		errs               = validateSettings(spec.Settings, shoot)
		networks, provider = seedSpecPath.Child("networks"), seedSpecPath.Child("provider")
		same               = func(path *field.Path, value, want string) {
			if value != want {
				errs = append(errs, field.Invalid(path, value, fmt.Sprintf("must be that of the Shoot, %q", want)))
			}
		}
	)
	if dns := shoot.Spec.DNS; dns != nil && dns.Domain != nil && spec.Ingress != nil {
		same(seedSpecPath.Child("ingress", "domain"), spec.Ingress.Domain, ingressPrefix+*dns.Domain)
	}
	if of := shoot.Spec.Networking; of != nil {
		if of.Nodes != nil && !ptr.Equal(of.Nodes, spec.Networks.Nodes) {
			errs = append(errs, field.Invalid(networks.Child("nodes"), spec.Networks.Nodes, fmt.Sprintf("must be that of the Shoot, %q", *of.Nodes)))
		}
		same(networks.Child("pods"), spec.Networks.Pods, ptr.Deref(of.Pods, spec.Networks.Pods))
		same(networks.Child("services"), spec.Networks.Services, ptr.Deref(of.Services, spec.Networks.Services))
	}
	same(provider.Child("type"), spec.Provider.Type, shoot.Spec.Provider.Type)
	same(provider.Child("region"), spec.Provider.Region, shoot.Spec.Region)
	return errs
}

// validateSettings refuses a second vertical pod autoscaler, and topology-aware routing if the Shoot disables the
// feature gate that it needs.
func validateSettings(settings *gardencore.SeedSettings, shoot *gardencore.Shoot) field.ErrorList {
	if settings == nil {
		return nil
	}
	var errs field.ErrorList
	path := seedSpecPath.Child("settings")
	if vpa := settings.VerticalPodAutoscaler; vpa != nil && vpa.Enabled {
		errs = append(errs, field.Invalid(path.Child("verticalPodAutoscaler", "enabled"), true, "must be false: the Shoot has one"))
	}
	if routing := settings.TopologyAwareRouting; routing != nil && routing.Enabled {
		kubernetes := &shoot.Spec.Kubernetes
		for _, component := range []struct {
			name  string
			gates map[string]bool
		}{
			{"kube-apiserver", ptr.Deref(kubernetes.KubeAPIServer, gardencore.KubeAPIServerConfig{}).FeatureGates},
			{"kube-controller-manager", ptr.Deref(kubernetes.KubeControllerManager, gardencore.KubeControllerManagerConfig{}).FeatureGates},
			{"kube-proxy", ptr.Deref(kubernetes.KubeProxy, gardencore.KubeProxyConfig{}).FeatureGates},
		} {
			if enabled, set := component.gates["TopologyAwareHints"]; set && !enabled {
				errs = append(errs, field.Invalid(path.Child("topologyAwareRouting", "enabled"), true,
					"must be false while the Shoot disables the feature gate TopologyAwareHints of "+component.name))
			}
		}
	}
	return errs
}
