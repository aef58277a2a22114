package corevalidation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

const notForWorkerlessShoots = "must not be set for a Shoot without workers"

// validateShootSpec checks the specification of a shoot or of a template for shoots.
func validateShootSpec(namespace string, annotations map[string]string, spec *gardencore.ShootSpec, options shootOptions,
	path *field.Path) field.ErrorList {
	var (
		workerless = len(spec.Provider.Workers) == 0
		selfHosted = IsSelfHosted(spec.Provider.Workers)
	)
	errs := slices.Concat(
		validateCloudProfileReference(spec, path),
		validateShootProvider(namespace, spec, options.inTemplate, path.Child("provider")),
		validateAddons(spec, workerless, options.allowNginxIngress, path.Child("addons")),
		validateDNS(spec.DNS, spec.Kubernetes.Version, path.Child("dns")),
		validateExtensions(spec.Extensions, path.Child("extensions")),
		ValidateResources(spec.Resources, path.Child("resources"), true),
		validateKubernetes(spec.Kubernetes, spec.Networking, options.kubernetes, workerless, path.Child("kubernetes")),
		validateNetworking(spec.Networking, workerless, path.Child("networking")),
		validateMaintenance(spec.Maintenance, workerless, path.Child("maintenance")),
		validateMonitoring(spec.Monitoring, path.Child("monitoring")),
		validateHibernation(spec.Hibernation, annotations, selfHosted, path.Child("hibernation")),
		validateBindingNames(spec, workerless, selfHosted, path),
		validateSchedulingFields(spec, path),
		validateControlPlaneZones(spec, path.Child("controlPlane", "zones")),
		validatePurpose(spec.Purpose, options.inTemplate || namespace == constants.GardenNamespace, path.Child("purpose")),
		ValidateTolerations(spec.Tolerations, path.Child("tolerations")),
		validateSystemComponents(spec.SystemComponents, workerless, path.Child("systemComponents")),
		RequiredIf(spec.Region == "", path.Child("region"), "must name a region"),
		Optional(spec.ExposureClassName, path.Child("exposureClassName"), ValidateDNS1123Subdomain),
	)
	if selfHosted {
		errs = append(errs, validateSelfHosted(namespace, spec, path)...)
	}
	return errs
}

// ---- cloud profile, credentials, seed ----

// validateCloudProfileReference checks the reference to the cloud profile. Up to Kubernetes 1.33, the deprecated
// cloudProfileName may be set instead.
func validateCloudProfileReference(spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var (
		errs field.ErrorList
		name = ptr.Deref(spec.CloudProfileName, "")
		ref  = spec.CloudProfile
	)
	errs = append(errs, ForbiddenIf(name != "" && VersionAtLeast(spec.Kubernetes.Version, "1.34"),
		path.Child("cloudProfileName"), "must not be set from Kubernetes 1.34 on; use spec.cloudProfile.name")...)
	if ref == nil && spec.CloudProfileName != nil {
		ref = &gardencore.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: name}
	}
	if ref == nil || ref.Name == "" {
		return append(errs, field.Required(path.Child("cloudProfile", "name"), "must name a cloud profile"))
	}
	return append(errs, Supported(path.Child("cloudProfile", "kind"), ref.Kind,
		constants.CloudProfileReferenceKindCloudProfile, constants.CloudProfileReferenceKindNamespacedCloudProfile)...)
}

// validateBindingNames checks that there is exactly one credentials binding if the shoot has workers. It is optional
// for a self-hosted shoot.
func validateBindingNames(spec *gardencore.ShootSpec, workerless, selfHosted bool, path *field.Path) field.ErrorList {
	var (
		errs                                  field.ErrorList
		secretPath, credentialsPath           = path.Child("secretBindingName"), path.Child("credentialsBindingName")
		secretBindingName, credentialsBinding = ptr.Deref(spec.SecretBindingName, ""), ptr.Deref(spec.CredentialsBindingName, "")
	)
	switch {
	case workerless:
		return append(
			ForbiddenIf(spec.SecretBindingName != nil, secretPath, notForWorkerlessShoots),
			ForbiddenIf(spec.CredentialsBindingName != nil, credentialsPath, notForWorkerlessShoots)...,
		)
	case selfHosted:
		return nil
	case secretBindingName == "" && credentialsBinding == "":
		return field.ErrorList{field.Required(secretPath, "must be set unless credentialsBindingName is")}
	case secretBindingName != "" && credentialsBinding != "":
		errs = append(errs, field.Forbidden(secretPath, "must not be set together with credentialsBindingName"))
	}
	return append(errs, ForbiddenIf(secretBindingName != "" && VersionAtLeast(spec.Kubernetes.Version, "1.34"),
		secretPath, "must not be set from Kubernetes 1.34 on; use spec.credentialsBindingName")...)
}

func validateSchedulingFields(spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	return slices.Concat(
		InvalidIf(spec.SeedName != nil && *spec.SeedName == "", path.Child("seedName"), "",
			"must not be empty; leave it out to have the Shoot scheduled"),
		Optional(spec.SeedSelector, path.Child("seedSelector"), validateSeedSelector),
		Optional(spec.SchedulerName, path.Child("schedulerName"), validateDNSLabel),
	)
}

// validateControlPlaneZones checks that the zones to which a control plane is pinned are as many as it runs in.
func validateControlPlaneZones(spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	zones := ControlPlaneZones(spec)
	if len(zones) == 0 {
		return nil
	}
	var errs field.ErrorList
	different := sets.New[string]()
	for i, zone := range zones {
		errs = append(errs, Distinct(path.Index(i), different, zone)...)
	}
	wanted, detail := 1, "must be one zone, unless the failure of a zone is to be tolerated"
	if toleratesZoneFailure(spec) {
		wanted, detail = 3, "must be three zones to tolerate the failure of one"
	}
	return append(errs, InvalidIf(different.Len() != wanted, path, zones, detail)...)
}

func validatePurpose(purpose *gardencore.ShootPurpose, mayBeInfrastructure bool, path *field.Path) field.ErrorList {
	if purpose == nil {
		return nil
	}
	allowed := []gardencore.ShootPurpose{gardencore.ShootPurposeDevelopment, gardencore.ShootPurposeEvaluation,
		gardencore.ShootPurposeProduction, gardencore.ShootPurposeTesting}
	if mayBeInfrastructure {
		allowed = append(allowed, gardencore.ShootPurposeInfrastructure)
	}
	return Supported(path, *purpose, allowed...)
}

// ---- self-hosted shoots ----

// validateSelfHosted checks the rules for shoots that run their own control plane. They must be in the garden
// namespace, so that a shoot that is also a seed is found by the seed's name.
func validateSelfHosted(namespace string, spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	i := controlPlanePool(spec.Provider.Workers)
	return slices.Concat(
		InvalidIf(spec.SeedName != nil, path.Child("seedName"), ptr.Deref(spec.SeedName, ""), "must not be set for a self-hosted Shoot"),
		InvalidIf(namespace != constants.GardenNamespace, field.NewPath("metadata", "namespace"),
			namespace, fmt.Sprintf("must be %q for a self-hosted Shoot", constants.GardenNamespace)),
		validateControlPlanePool(&spec.Provider.Workers[i], FailureToleranceType(spec), path.Child("provider", "workers").Index(i)),
	)
}

// validateControlPlanePool checks that the worker pool has as many machines as the control plane has replicas. As in
// Gardener, the rules for a highly available control plane cannot be met yet: they require one machine and three
// machines at the same time.
func validateControlPlanePool(pool *gardencore.Worker, failureTolerance *gardencore.FailureToleranceType,
	path *field.Path) field.ErrorList {
	errs := InvalidIf(pool.Minimum != 1 || pool.Maximum != 1, path.Child("minimum"), pool.Minimum,
		"minimum and maximum of the control plane's worker pool must both be 1")
	if failureTolerance == nil {
		return append(errs, InvalidIf(pool.Maximum != 1, path.Child("maximum"), pool.Maximum,
			"must be 1 for a control plane without high availability")...)
	}
	return slices.Concat(errs,
		InvalidIf(pool.Maximum != 3, path.Child("maximum"), pool.Maximum, "must be 3 for a highly available control plane"),
		InvalidIf(pool.MaxSurge == nil || pool.MaxSurge.IntValue() != 1, path.Child("maxSurge"), pool.MaxSurge,
			"must be 1 for a highly available control plane"),
		InvalidIf(pool.MaxUnavailable == nil || pool.MaxUnavailable.IntValue() != 1, path.Child("maxUnavailable"),
			pool.MaxUnavailable, "must be 1 for a highly available control plane"),
		InvalidIf(*failureTolerance == gardencore.FailureToleranceTypeZone && len(pool.Zones) != 3, path.Child("zones"),
			pool.Zones, "must be three zones to tolerate the failure of one"),
	)
}

// ---- networking ----

func validateNetworking(networking *gardencore.Networking, workerless bool, path *field.Path) field.ErrorList {
	if networking == nil {
		if workerless {
			return nil
		}
		return field.ErrorList{field.Required(path, "must be set for a Shoot with workers")}
	}
	var errs field.ErrorList
	if workerless {
		errs = validateWorkerlessNetworking(networking, path)
	} else {
		errs = validateNetworkingType(ptr.Deref(networking.Type, ""), path.Child("type"))
	}
	if familyErrs := ValidateIPFamilies(networking.IPFamilies, path.Child("ipFamilies")); len(familyErrs) > 0 {
		return append(errs, familyErrs...) // without valid families, the ranges cannot be checked
	}
	for _, network := range []struct {
		name string
		cidr *string
	}{{"nodes", networking.Nodes}, {"pods", networking.Pods}, {"services", networking.Services}} {
		cidr := optionalCIDR(network.cidr, path.Child(network.name))
		errs = append(errs, cidr.ValidateParse()...)
		if len(networking.IPFamilies) < 2 {
			errs = append(errs, cidr.ValidateIPFamily(primaryIPFamily(networking.IPFamilies))...)
		}
		errs = append(errs, cidr.ValidateCanonical()...)
	}
	return errs
}

func validateWorkerlessNetworking(networking *gardencore.Networking, path *field.Path) field.ErrorList {
	return slices.Concat(
		ForbiddenIf(networking.Type != nil, path.Child("type"), notForWorkerlessShoots),
		ForbiddenIf(networking.ProviderConfig != nil, path.Child("providerConfig"), notForWorkerlessShoots),
		ForbiddenIf(networking.Pods != nil, path.Child("pods"), notForWorkerlessShoots),
		ForbiddenIf(networking.Nodes != nil, path.Child("nodes"), notForWorkerlessShoots),
	)
}

// validateNetworkingType checks that the type can be a part of a label.
func validateNetworkingType(networkingType string, path *field.Path) field.ErrorList {
	if networkingType == "" {
		return field.ErrorList{field.Required(path, "must name the network plugin")}
	}
	return InvalidIf(len(validation.IsQualifiedName(constants.LabelExtensionNetworkingTypePrefix+networkingType)) > 0,
		path, networkingType, "must be a valid label name")
}
