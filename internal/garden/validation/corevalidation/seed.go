package corevalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ---- objects and templates ----

// ValidateSeed checks a new seed.
func ValidateSeed(seed *gardencore.Seed) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&seed.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		ValidateOperation(seed.Annotations,
			constants.GardenerOperationReconcile, constants.SeedOperationRenewGardenAccessSecrets,
			constants.GardenerOperationRenewKubeconfig, constants.SeedOperationRenewWorkloadIdentityTokens),
		ValidateSeedSpec(&seed.Spec, field.NewPath("spec"), false),
	)
}

// ValidateSeedUpdate checks a changed seed.
func ValidateSeedUpdate(newSeed, oldSeed *gardencore.Seed) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newSeed.ObjectMeta, &oldSeed.ObjectMeta, field.NewPath("metadata")),
		ValidateOperationUpdate(newSeed.Annotations, oldSeed.Annotations),
		ValidateSeedSpecUpdate(&newSeed.Spec, &oldSeed.Spec, field.NewPath("spec")),
		ValidateSeed(newSeed),
	)
}

// ValidateSeedStatusUpdate refuses to change the cluster identity once it is set.
func ValidateSeedStatusUpdate(newSeed, oldSeed *gardencore.Seed) field.ErrorList {
	return immutableOnceSet(newSeed.Status.ClusterIdentity, oldSeed.Status.ClusterIdentity, field.NewPath("status", "clusterIdentity"))
}

// ValidateSeedTemplate checks a template for seeds. The specification may lack fields that are filled in when a seed
// is created from the template.
func ValidateSeedTemplate(template *gardencore.SeedTemplate, path *field.Path) field.ErrorList {
	return slices.Concat(
		metav1validation.ValidateLabels(template.Labels, path.Child("metadata", "labels")),
		apivalidation.ValidateAnnotations(template.Annotations, path.Child("metadata", "annotations")),
		ValidateSeedSpec(&template.Spec, path.Child("spec"), true),
	)
}

// ValidateSeedTemplateUpdate checks a changed template like a changed seed.
func ValidateSeedTemplateUpdate(newTemplate, oldTemplate *gardencore.SeedTemplate, path *field.Path) field.ErrorList {
	return ValidateSeedSpecUpdate(&newTemplate.Spec, &oldTemplate.Spec, path.Child("spec"))
}

// ---- specification ----

// ValidateSeedSpec checks the specification of a seed or, with fewer required fields, of a template for seeds.
func ValidateSeedSpec(spec *gardencore.SeedSpec, path *field.Path, inTemplate bool) field.ErrorList {
	return slices.Concat(
		validateSeedProvider(spec.Provider, path.Child("provider"), inTemplate),
		validateSeedNetworks(spec.Networks, path.Child("networks"), inTemplate),
		validateSeedBackup(spec.Backup, spec.Provider.Type, path.Child("backup")),
		validateSeedTaints(spec.Taints, path.Child("taints")),
		Optional(spec.Volume, path.Child("volume"), validateSeedVolume),
		validateSeedSettings(spec.Settings, spec.Provider.Zones, path.Child("settings")),
		validateSeedIngress(spec.Ingress, path.Child("ingress"), inTemplate),
		validateSeedDNS(spec.DNS, path.Child("dns")),
		validateExtensions(spec.Extensions, path.Child("extensions")),
		ValidateResources(spec.Resources, path.Child("resources"), true),
		RequiredIf(spec.Ingress != nil && spec.DNS.Provider == nil, path.Child("dns", "provider"), "must be set for the ingress"),
	)
}

// ValidateSeedSpecUpdate refuses to change what control planes on the seed depend on: its networks, its ingress
// domain, and the provider and region of its backups. It also refuses to remove all default domains.
func ValidateSeedSpecUpdate(newSpec, oldSpec *gardencore.SeedSpec, path *field.Path) field.ErrorList {
	var newDomain, oldDomain *string
	if newSpec.Ingress != nil && oldSpec.Ingress != nil {
		newDomain, oldDomain = &newSpec.Ingress.Domain, &oldSpec.Ingress.Domain
	}
	return slices.Concat(
		validateSeedNetworksUpdate(newSpec.Networks, oldSpec.Networks, path.Child("networks")),
		immutableOnceSet(newDomain, oldDomain, path.Child("ingress", "domain")),
		validateBackupUpdate(newSpec.Backup, oldSpec.Backup, path.Child("backup")),
		ForbiddenIf(len(oldSpec.DNS.Defaults) > 0 && len(newSpec.DNS.Defaults) == 0, path.Child("dns", "defaults"), "must not be removed"),
	)
}

// validateBackupUpdate refuses to remove backups, and to change their provider and their region.
func validateBackupUpdate(newBackup, oldBackup *gardencore.Backup, path *field.Path) field.ErrorList {
	switch {
	case oldBackup == nil:
		return nil
	case newBackup == nil:
		return immutable(newBackup, oldBackup, path)
	}
	return append(
		immutable(newBackup.Provider, oldBackup.Provider, path.Child("provider")),
		immutable(newBackup.Region, oldBackup.Region, path.Child("region"))...,
	)
}

func validateSeedProvider(provider gardencore.SeedProvider, path *field.Path, inTemplate bool) field.ErrorList {
	var errs field.ErrorList
	if !inTemplate {
		errs = append(errs, Required(path.Child("type"), provider.Type)...)
		errs = append(errs, Required(path.Child("region"), provider.Region)...)
	}
	zones := sets.New[string]()
	for i, zone := range provider.Zones {
		if !insertNew(zones, zone) {
			return append(errs, field.Duplicate(path.Child("zones").Index(i), zone))
		}
	}
	return errs
}

func validateSeedBackup(backup *gardencore.Backup, seedProvider string, path *field.Path) field.ErrorList {
	if backup == nil {
		return nil
	}
	return slices.Concat(
		Required(path.Child("provider"), backup.Provider),
		InvalidIf(backup.Provider != seedProvider && ptr.Deref(backup.Region, "") == "", path.Child("region"), "",
			"must be set if the provider of the backups is not that of the seed"),
		validateRequiredCredentialsRef(backup.CredentialsRef, path.Child("credentialsRef")),
	)
}

func validateSeedTaints(taints []gardencore.SeedTaint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, taint := range taints {
		errs = append(errs, Required(path.Index(i).Child("key"), taint.Key)...)
		errs = append(errs, Distinct(path.Index(i), seen, keyValueID(taint.Key, taint.Value))...)
	}
	return errs
}

func validateSeedVolume(volume gardencore.SeedVolume, path *field.Path) field.ErrorList {
	errs := optionalQuantity(volume.MinimumSize, path.Child("minimumSize"))
	purposes := sets.New[string]()
	for i, provider := range volume.Providers {
		idxPath := path.Child("providers").Index(i)
		errs = append(errs, Required(idxPath.Child("purpose"), provider.Purpose)...)
		errs = append(errs, Required(idxPath.Child("name"), provider.Name)...)
		errs = append(errs, Distinct(idxPath.Child("purpose"), purposes, provider.Purpose)...)
	}
	return errs
}

func validateSeedIngress(ingress *gardencore.Ingress, path *field.Path, inTemplate bool) field.ErrorList {
	if ingress == nil {
		if inTemplate {
			return nil
		}
		return field.ErrorList{field.Required(path, "must not be empty")}
	}
	return append(
		requiredName(path.Child("domain"), ingress.Domain, validation.IsDNS1123Subdomain),
		Supported(path.Child("controller", "kind"), ingress.Controller.Kind, constants.IngressKindNginx)...,
	)
}

func validateSeedDNS(dns gardencore.SeedDNS, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if provider := dns.Provider; provider != nil {
		errs = append(errs, Required(path.Child("provider", "type"), provider.Type)...)
		errs = append(errs, validateRequiredCredentialsRef(provider.CredentialsRef, path.Child("provider", "credentialsRef"))...)
	}
	if dns.Internal == nil {
		errs = append(errs, field.Required(path.Child("internal"), "must not be empty"))
	} else {
		errs = append(errs, validateSeedDNSProviderConfig(*dns.Internal, path.Child("internal"))...)
	}
	domains := sets.New[string]()
	for i, config := range dns.Defaults {
		idxPath := path.Child("defaults").Index(i)
		errs = append(errs, validateSeedDNSProviderConfig(config, idxPath)...)
		errs = append(errs, Distinct(idxPath.Child("domain"), domains, config.Domain)...)
	}
	return errs
}

func validateSeedDNSProviderConfig(config gardencore.SeedDNSProviderConfig, path *field.Path) field.ErrorList {
	return slices.Concat(
		requiredName(path.Child("domain"), config.Domain, validation.IsDNS1123Subdomain),
		Required(path.Child("type"), config.Type),
		ValidateCredentialsRef(config.CredentialsRef, path.Child("credentialsRef")),
	)
}

// ---- networks ----

// seedNetworks are the parsed networks of a seed. A network that is not set is nil.
type seedNetworks struct {
	pods, services, nodes, shootPods, shootServices *CIDR
}

func newSeedNetworks(networks gardencore.SeedNetworks, path *field.Path, inTemplate bool) seedNetworks {
	unlessEmpty := func(text, name string) *CIDR {
		if text == "" && inTemplate {
			return nil
		}
		return NewCIDR(text, path.Child(name))
	}
	parsed := seedNetworks{
		pods:     unlessEmpty(networks.Pods, "pods"),
		services: unlessEmpty(networks.Services, "services"),
		nodes:    optionalCIDR(networks.Nodes, path.Child("nodes")),
	}
	if defaults := networks.ShootDefaults; defaults != nil {
		parsed.shootPods = optionalCIDR(defaults.Pods, path.Child("shootDefaults", "pods"))
		parsed.shootServices = optionalCIDR(defaults.Services, path.Child("shootDefaults", "services"))
	}
	return parsed
}

// validateSeedNetworks checks that the ranges can be parsed, are of the right IP family, and overlap neither with
// each other nor with reserved ranges. IPv4 defaults for shoots may overlap with the seed's ranges, because they are
// mapped in the VPN.
func validateSeedNetworks(networks gardencore.SeedNetworks, path *field.Path, inTemplate bool) field.ErrorList {
	if errs := ValidateIPFamilies(networks.IPFamilies, path.Child("ipFamilies")); len(errs) > 0 {
		return errs // without valid families, the ranges cannot be checked
	}
	var (
		parsed   = newSeedNetworks(networks, path, inTemplate)
		seed     = []*CIDR{parsed.pods, parsed.services, parsed.nodes}
		defaults = []*CIDR{parsed.shootPods, parsed.shootServices}
		all      = slices.Concat(seed, defaults)
	)
	errs := forEachCIDR(all, (*CIDR).ValidateParse)
	if parsed.services.IsIPv4() { // the VPN maps it to the reserved range
		prefix, _ := NewCIDR(constants.ReservedKubeApiServerMappingRange, nil).net.Mask.Size()
		errs = append(errs, parsed.services.ValidateMaxSize(prefix)...)
	}
	if len(networks.IPFamilies) != 2 {
		family := primaryIPFamily(networks.IPFamilies)
		errs = append(errs, forEachCIDR(all, func(c *CIDR) field.ErrorList { return c.ValidateIPFamily(family) })...)
	}
	if len(errs) > 0 {
		return errs
	}

	defaultsIPv4, defaultsIPv6 := slices.Clone(defaults), slices.Clone(defaults)
	defaultsIPv4 = slices.DeleteFunc(defaultsIPv4, func(c *CIDR) bool { return !c.IsIPv4() })
	defaultsIPv6 = slices.DeleteFunc(defaultsIPv6, func(c *CIDR) bool { return !c.IsIPv6() })
	return slices.Concat(
		ValidateCIDRsDisjoint(seed...),
		ValidateCIDRsDisjoint(defaultsIPv4...),
		ValidateCIDRsDisjoint(defaultsIPv6...),
		forEachCIDR(seed, func(c *CIDR) field.ErrorList { return c.ValidateNotOverlap(defaultsIPv6...) }),
		parsed.pods.ValidateNotReserved("pod"),
		parsed.services.ValidateNotReserved("service"),
		parsed.nodes.ValidateNotReserved("node"),
		parsed.shootPods.ValidateNotReserved("pod"),
		parsed.shootServices.ValidateNotReserved("service"),
	)
}

func validateSeedNetworksUpdate(newNetworks, oldNetworks gardencore.SeedNetworks, path *field.Path) field.ErrorList {
	return slices.Concat(
		immutable(newNetworks.IPFamilies, oldNetworks.IPFamilies, path.Child("ipFamilies")),
		immutable(newNetworks.Pods, oldNetworks.Pods, path.Child("pods")),
		immutable(newNetworks.Services, oldNetworks.Services, path.Child("services")),
		immutableOnceSet(newNetworks.Nodes, oldNetworks.Nodes, path.Child("nodes")),
	)
}
