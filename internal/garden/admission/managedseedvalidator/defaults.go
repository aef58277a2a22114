package managedseedvalidator

import (
	"context"
	"errors"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

const ingressPrefix = "ingress."

// setDefaults defaults the seed template of a GardenletConfiguration, if it has one.
func setDefaults(ctx context.Context, deps plugin.Dependencies, object runtime.Object, shoot *gardencore.Shoot) error {
	if object == nil {
		return nil
	}
	config, err := configuration(object)
	if err != nil || config.SeedConfig == nil {
		return err
	}
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		return field.Invalid(shootNamePath, shoot.Name, "is a Shoot without a domain")
	}
	template := &config.SeedConfig.SeedTemplate
	spec, err := toInternal(template)
	if err != nil {
		return err
	}
	if spec.Ingress == nil {
		spec.Ingress = &gardencore.Ingress{Controller: gardencore.IngressController{Kind: v1beta1constants.IngressKindNginx}}
	}
	if spec.DNS.Provider == nil {
		spec.DNS.Provider, err = dnsProvider(ctx, deps, shoot)
		if unfit := unfitDNS(""); errors.As(err, &unfit) {
			return field.Invalid(seedSpecPath.Child("ingress"), spec.Ingress.Domain, err.Error())
		} else if err != nil {
			return err
		}
	}
	setDefaultsFromShoot(spec, shoot)
	return toExternal(spec, template)
}

func setDefaultsFromShoot(spec *gardencore.SeedSpec, shoot *gardencore.Shoot) {
	networking, provider := ptr.Deref(shoot.Spec.Networking, gardencore.Networking{}), shoot.Spec.Provider
	if spec.Backup != nil {
		setDefault(&spec.Backup.Provider, provider.Type)
	}
	setDefault(&spec.Ingress.Domain, ingressPrefix+*shoot.Spec.DNS.Domain)
	if spec.Networks.Nodes == nil && networking.Nodes != nil {
		spec.Networks.Nodes = ptr.To(*networking.Nodes)
	}
	setDefault(&spec.Networks.Pods, ptr.Deref(networking.Pods, ""))
	setDefault(&spec.Networks.Services, ptr.Deref(networking.Services, ""))
	setDefault(&spec.Provider.Type, provider.Type)
	setDefault(&spec.Provider.Region, shoot.Spec.Region)
	if zones := shootcommon.WorkerZones(shoot); len(spec.Provider.Zones) == 0 && zones.Len() > 0 {
		spec.Provider.Zones = sets.List(zones)
	}
	if spec.Settings == nil {
		spec.Settings = &gardencore.SeedSettings{}
	}
	if spec.Settings.VerticalPodAutoscaler == nil { // the Shoot already runs one
		spec.Settings.VerticalPodAutoscaler = &gardencore.SeedSettingVerticalPodAutoscaler{Enabled: false}
	}
}

func setDefault(value *string, to string) {
	if *value == "" {
		*value = to
	}
}
