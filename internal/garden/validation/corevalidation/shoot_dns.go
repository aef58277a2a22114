package corevalidation

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func validateDNS(dns *gardencore.DNS, kubernetesVersion string, path *field.Path) field.ErrorList {
	if dns == nil {
		return nil
	}
	var errs field.ErrorList
	if dns.Domain != nil {
		errs = append(errs, ValidateDNS1123Subdomain(*dns.Domain, path.Child("domain"))...)
	} else if primary := PrimaryDNSProvider(dns.Providers); primary != nil &&
		ptr.Deref(primary.Type, gardencore.DNSUnmanaged) != gardencore.DNSUnmanaged {
		errs = append(errs, field.Required(
			path.Child("domain"), fmt.Sprintf("must be set unless the primary provider's type is %q", gardencore.DNSUnmanaged)))
	}
	var (
		seen         = sets.New[dnsCredentials]()
		primaryFound bool
	)
	for i := range dns.Providers {
		errs = append(errs, validateDNSProvider(&dns.Providers[i], kubernetesVersion, seen, &primaryFound, path.Child("providers").Index(i))...)
	}
	return errs
}

// dnsCredentials are the type and the credentials of a DNS provider. They must be distinct.
type dnsCredentials struct {
	providerType string
	ref          autoscalingv1.CrossVersionObjectReference
}

// validateDNSProvider checks one provider. It stops at an error that makes the provider useless, as Gardener does.
func validateDNSProvider(provider *gardencore.DNSProvider, kubernetesVersion string, seen sets.Set[dnsCredentials],
	primaryFound *bool, path *field.Path) field.ErrorList {
	var (
		errs    = validateDNSCredentials(provider, kubernetesVersion, path)
		ref     = provider.CredentialsRef
		primary = ptr.Deref(provider.Primary, false)
	)
	if ref != nil && provider.Type != nil && !insertNew(seen, dnsCredentials{*provider.Type, *ref}) {
		return append(errs, field.Invalid(path, *provider.Type, "must not have the type and credentialsRef of another provider"))
	}
	if primary {
		if *primaryFound {
			return append(errs, field.Forbidden(path.Child("primary"), "must not be true for more than one provider"))
		}
		*primaryFound = true
	}
	if ref != nil {
		switch {
		case provider.Type == nil:
			errs = append(errs, field.Required(path.Child("type"), "must be set together with credentialsRef"))
		case *provider.Type == gardencore.DNSUnmanaged:
			return append(errs, field.Invalid(path.Child("credentialsRef"), ref,
				fmt.Sprintf("must not be set if type is %q", gardencore.DNSUnmanaged)))
		}
	} else if !primary {
		errs = append(errs, field.Required(path.Child("credentialsRef"), "must be set unless the provider is the primary one"))
	}
	return errs
}

// validateDNSCredentials checks credentialsRef and the deprecated secretName. Before Kubernetes 1.35, both must name
// the same Secret; from then on, secretName is forbidden.
func validateDNSCredentials(provider *gardencore.DNSProvider, kubernetesVersion string, path *field.Path) field.ErrorList {
	var (
		errs       field.ErrorList
		secretPath = path.Child("secretName")
		secretName = provider.SecretName
		ref        = provider.CredentialsRef
		synced     = versionBefore(kubernetesVersion, "1.35")
	)
	errs = append(errs, ForbiddenIf(secretName != nil && VersionAtLeast(kubernetesVersion, "1.35"), secretPath,
		"must not be set from Kubernetes 1.35 on; use credentialsRef")...)
	if ref == nil {
		return append(errs, ForbiddenIf(secretName != nil && synced, secretPath, "must not be set without credentialsRef")...)
	}
	errs = append(errs, ValidateLocalCredentialsRef(*ref, path.Child("credentialsRef"))...)
	if ref.APIVersion == secretGVK.GroupVersion().String() && ref.Kind == secretGVK.Kind {
		errs = append(errs, ForbiddenIf(synced && (secretName == nil || *secretName != ref.Name), secretPath,
			"must name the same Secret as credentialsRef")...)
	} else if ptr.Deref(secretName, "") != "" {
		errs = append(errs, field.Forbidden(secretPath, "must not be set if credentialsRef is not to a Secret"))
	}
	return errs
}

// validateDNSUpdate refuses to change the domain once it is set and, once the shoot has a seed, to remove the primary
// provider or to change its type.
func validateDNSUpdate(newDNS, oldDNS *gardencore.DNS, scheduled bool, path *field.Path) field.ErrorList {
	switch {
	case oldDNS == nil:
		return nil
	case newDNS == nil:
		return immutable(newDNS, oldDNS, path)
	}
	var errs field.ErrorList
	if oldDNS.Domain != nil && ptr.Deref(newDNS.Domain, "") != *oldDNS.Domain {
		errs = append(errs, immutable(newDNS.Domain, oldDNS.Domain, path.Child("domain"))...)
	}
	oldPrimary, newPrimary := PrimaryDNSProvider(oldDNS.Providers), PrimaryDNSProvider(newDNS.Providers)
	providersPath := path.Child("providers")
	switch {
	case !scheduled || oldPrimary == nil:
	case newPrimary == nil:
		errs = append(errs, field.Forbidden(providersPath, "the primary provider must not be removed"))
	case oldPrimary.Type != nil && (newPrimary.Type == nil || *newPrimary.Type != *oldPrimary.Type):
		errs = append(errs, field.Forbidden(providersPath, "the primary provider's type must not be changed"))
	}
	return errs
}
