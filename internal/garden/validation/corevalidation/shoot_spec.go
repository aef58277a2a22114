package corevalidation

import (
	"fmt"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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
		selfHosted = isSelfHosted(spec.Provider.Workers)
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
		validatePurpose(spec.Purpose, options.inTemplate || namespace == constants.GardenNamespace, path.Child("purpose")),
		ValidateTolerations(spec.Tolerations, path.Child("tolerations")),
		validateSystemComponents(spec.SystemComponents, workerless, path.Child("systemComponents")),
	)
	if spec.Region == "" {
		errs = append(errs, field.Required(path.Child("region"), "must name a region"))
	}
	if spec.ExposureClassName != nil {
		errs = append(errs, ValidateDNS1123Subdomain(*spec.ExposureClassName, path.Child("exposureClassName"))...)
	}
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
	if name != "" && versionAtLeast(spec.Kubernetes.Version, "1.34") {
		errs = append(errs, field.Forbidden(
			path.Child("cloudProfileName"), "must not be set from Kubernetes 1.34 on; use spec.cloudProfile.name"))
	}
	if ref == nil && spec.CloudProfileName != nil {
		ref = &gardencore.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: name}
	}
	if ref == nil || ref.Name == "" {
		return append(errs, field.Required(path.Child("cloudProfile", "name"), "must name a cloud profile"))
	}
	return append(errs, supported(path.Child("cloudProfile", "kind"), ref.Kind,
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
		if spec.SecretBindingName != nil {
			errs = append(errs, field.Forbidden(secretPath, notForWorkerlessShoots))
		}
		if spec.CredentialsBindingName != nil {
			errs = append(errs, field.Forbidden(credentialsPath, notForWorkerlessShoots))
		}
		return errs
	case selfHosted:
		return nil
	case secretBindingName == "" && credentialsBinding == "":
		return field.ErrorList{field.Required(secretPath, "must be set unless credentialsBindingName is")}
	case secretBindingName != "" && credentialsBinding != "":
		errs = append(errs, field.Forbidden(secretPath, "must not be set together with credentialsBindingName"))
	}
	if secretBindingName != "" && versionAtLeast(spec.Kubernetes.Version, "1.34") {
		errs = append(errs, field.Forbidden(secretPath, "must not be set from Kubernetes 1.34 on; use spec.credentialsBindingName"))
	}
	return errs
}

func validateSchedulingFields(spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.SeedName != nil && *spec.SeedName == "" {
		errs = append(errs, field.Invalid(path.Child("seedName"), *spec.SeedName, "must not be empty; leave it out to have the Shoot scheduled"))
	}
	if spec.SeedSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(
			&spec.SeedSelector.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("seedSelector"))...)
	}
	if spec.SchedulerName != nil {
		errs = append(errs, validateDNSLabel(*spec.SchedulerName, path.Child("schedulerName"))...)
	}
	return errs
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
	return supported(path, *purpose, allowed...)
}

// ---- self-hosted shoots ----

// validateSelfHosted checks the rules for shoots that run their own control plane. They must be in the garden
// namespace, so that a shoot that is also a seed is found by the seed's name.
func validateSelfHosted(namespace string, spec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.SeedName != nil {
		errs = append(errs, field.Invalid(path.Child("seedName"), *spec.SeedName, "must not be set for a self-hosted Shoot"))
	}
	if namespace != constants.GardenNamespace {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "namespace"), namespace,
			fmt.Sprintf("must be %q for a self-hosted Shoot", constants.GardenNamespace)))
	}
	i := controlPlanePool(spec.Provider.Workers)
	return append(errs, validateControlPlanePool(&spec.Provider.Workers[i], failureToleranceType(spec),
		path.Child("provider", "workers").Index(i))...)
}

// validateControlPlanePool checks that the worker pool has as many machines as the control plane has replicas. As in
// Gardener, the rules for a highly available control plane cannot be met yet: they require one machine and three
// machines at the same time.
func validateControlPlanePool(pool *gardencore.Worker, failureTolerance *gardencore.FailureToleranceType,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if pool.Minimum != 1 || pool.Maximum != 1 {
		errs = append(errs, field.Invalid(path.Child("minimum"), pool.Minimum,
			"minimum and maximum of the control plane's worker pool must both be 1"))
	}
	if failureTolerance == nil {
		if pool.Maximum != 1 {
			errs = append(errs, field.Invalid(path.Child("maximum"), pool.Maximum, "must be 1 for a control plane without high availability"))
		}
		return errs
	}
	if pool.Maximum != 3 {
		errs = append(errs, field.Invalid(path.Child("maximum"), pool.Maximum, "must be 3 for a highly available control plane"))
	}
	if pool.MaxSurge == nil || pool.MaxSurge.IntValue() != 1 {
		errs = append(errs, field.Invalid(path.Child("maxSurge"), pool.MaxSurge, "must be 1 for a highly available control plane"))
	}
	if pool.MaxUnavailable == nil || pool.MaxUnavailable.IntValue() != 1 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), pool.MaxUnavailable, "must be 1 for a highly available control plane"))
	}
	if *failureTolerance == gardencore.FailureToleranceTypeZone && len(pool.Zones) != 3 {
		errs = append(errs, field.Invalid(path.Child("zones"), pool.Zones, "must be three zones to tolerate the failure of one"))
	}
	return errs
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
		if network.cidr == nil {
			continue
		}
		cidr := NewCIDR(*network.cidr, path.Child(network.name))
		errs = append(errs, cidr.ValidateParse()...)
		if len(networking.IPFamilies) < 2 {
			errs = append(errs, cidr.ValidateIPFamily(primaryIPFamily(networking.IPFamilies))...)
		}
		errs = append(errs, cidr.ValidateCanonical()...)
	}
	return errs
}

func validateWorkerlessNetworking(networking *gardencore.Networking, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, unused := range []struct {
		name string
		set  bool
	}{
		{"type", networking.Type != nil},
		{"providerConfig", networking.ProviderConfig != nil},
		{"pods", networking.Pods != nil},
		{"nodes", networking.Nodes != nil},
	} {
		if unused.set {
			errs = append(errs, field.Forbidden(path.Child(unused.name), notForWorkerlessShoots))
		}
	}
	return errs
}

// validateNetworkingType checks that the type can be a part of a label.
func validateNetworkingType(networkingType string, path *field.Path) field.ErrorList {
	if networkingType == "" {
		return field.ErrorList{field.Required(path, "must name the network plugin")}
	}
	if len(validation.IsQualifiedName(constants.LabelExtensionNetworkingTypePrefix+networkingType)) > 0 {
		return field.ErrorList{field.Invalid(path, networkingType, "must be a valid label name")}
	}
	return nil
}
