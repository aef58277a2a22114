package managedseedvalidator

import (
	"context"
	"fmt"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// unfitDNS is the reason why the DNS configuration of a Shoot cannot be used for a seed.
type unfitDNS string

func (e unfitDNS) Error() string { return string(e) }

func missingCredentials(message string) error { return unfitDNS(message) }

// dnsProvider returns the DNS provider for the Shoot's domain: the Shoot's own primary provider, or that of the default
// domain. The Shoot must have a domain.
func dnsProvider(ctx context.Context, deps plugin.Dependencies, shoot *gardencore.Shoot) (*gardencore.SeedDNSProvider, error) {
	primary := validation.PrimaryDNSProvider(shoot.Spec.DNS.Providers)
	switch {
	case primary == nil:
		return defaultDNSProvider(ctx, deps, shoot)
	case primary.Type == nil:
		return nil, unfitDNS(fmt.Sprintf("the primary DNS provider of Shoot %s/%s has no type", shoot.Namespace, shoot.Name))
	case *primary.Type == gardencore.DNSUnmanaged:
		return defaultDNSProvider(ctx, deps, shoot)
	}
	credentials, err := dnsCredentials(ctx, deps, shoot, primary)
	if err != nil {
		return nil, err
	}
	return &gardencore.SeedDNSProvider{Type: *primary.Type, CredentialsRef: credentials}, nil
}

// dnsCredentials returns the credentials of the Shoot's DNS provider or else those of the Shoot's binding.
func dnsCredentials(ctx context.Context, deps plugin.Dependencies, shoot *gardencore.Shoot,
	provider *gardencore.DNSProvider) (
	*corev1.ObjectReference, error) {
	switch own := provider.CredentialsRef; {
	case own != nil:
		return &corev1.ObjectReference{APIVersion: own.APIVersion, Kind: own.Kind, Namespace: shoot.Namespace, Name: own.Name}, nil
	case shoot.Spec.SecretBindingName != nil:
		binding, err := get[*gardencore.SecretBinding](ctx, deps.Reader, gardencore.Resource("secretbindings"),
			shoot.Namespace, *shoot.Spec.SecretBindingName, missingCredentials)
		if err != nil {
			return nil, err
		}
		return &corev1.ObjectReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret",
			Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}, nil
	case shoot.Spec.CredentialsBindingName != nil:
		binding, err := get[*security.CredentialsBinding](ctx, deps.Reader, security.Resource("credentialsbindings"),
			shoot.Namespace, *shoot.Spec.CredentialsBindingName, missingCredentials)
		if err != nil {
			return nil, err
		}
		return ptr.To(binding.CredentialsRef), nil
	}
	return nil, unfitDNS(fmt.Sprintf("the primary DNS provider of Shoot %s/%s has no credentials", shoot.Namespace, shoot.Name))
}

// defaultDNSProvider returns the provider of the default domain that the Shoot's domain ends with: a default domain of
// the Shoot's seed if it has any, else one of the landscape.
func defaultDNSProvider(ctx context.Context, deps plugin.Dependencies, shoot *gardencore.Shoot) (*gardencore.SeedDNSProvider, error) {
	domain := *shoot.Spec.DNS.Domain
	none := unfitDNS(fmt.Sprintf("the domain of Shoot %s/%s is neither its own nor below a default domain", shoot.Namespace, shoot.Name))
	if shoot.Spec.SeedName != nil {
		seed, err := get[*gardencore.Seed](ctx, deps.Reader, gardencore.Resource("seeds"), "", *shoot.Spec.SeedName,
			func(message string) error {
				return field.Invalid(shootNamePath, shoot.Name, "is on a seed that does not exist: "+message)
			})
		if err != nil {
			return nil, err
		}
		for _, own := range seed.Spec.DNS.Defaults {
			if strings.HasSuffix(domain, "."+own.Domain) {
				return &gardencore.SeedDNSProvider{Type: own.Type, CredentialsRef: ptr.To(own.CredentialsRef)}, nil
			}
		}
		if len(seed.Spec.DNS.Defaults) > 0 {
			return nil, none
		}
	}
	secrets, err := seedcommon.DefaultDomainSecrets(ctx, deps.Kube)
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if strings.HasSuffix(domain, secret.Domain) {
			return &gardencore.SeedDNSProvider{Type: secret.Provider, CredentialsRef: ptr.To(secret.Ref)}, nil
		}
	}
	return nil, none
}
