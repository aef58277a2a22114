package admission

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootDNSPlugin is the admission plugin ShootDNS. A Shoot with a seed and without a domain gets one below the first
// default domain, <shoot>.<project>.<default domain>. One of its DNS providers becomes the primary one, unless its
// domain is below a default domain. Domains below a default domain must have this form, so that no Shoot takes the
// domain of another one.
//
// If there is no default domain, a Shoot without a domain stays without one and is not refused.
var shootDNSPlugin = plugin.Factory{
	Name:       "ShootDNS",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootDNS, shootcommon.Binding),
	Validate:   plugin.ForKind(gardencore.Kind("Shoot"), validateShootDNS, shootcommon.Binding),
}

var dnsPath = field.NewPath("spec", "dns")

func admitShootDNS(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, shoot, old *gardencore.Shoot) error {
	domains, err := defaultDomains(ctx, deps, shoot)
	if err != nil {
		return err
	}
	keepPrimaryProvider(shoot, old)
	if shoot.Spec.SeedName == nil {
		return nil
	}
	if !shootcommon.UnmanagedDNS(shoot) {
		if shoot.Spec.DNS == nil {
			shoot.Spec.DNS = &gardencore.DNS{}
		}
		if shoot.Spec.DNS.Domain == nil && len(domains) > 0 {
			project, err := shootcommon.Project(ctx, deps.Reader, shoot.Namespace)
			if err != nil {
				return err
			}
			shoot.Spec.DNS.Domain = ptr.To(fmt.Sprintf("%s.%s.%s", shootSubdomain(shoot), project.Name, domains[0]))
		}
	}
	choosePrimaryProvider(shoot.Spec.DNS, domains)
	return nil
}

// keepPrimaryProvider marks the old primary provider again if an update marks none.
func keepPrimaryProvider(shoot, old *gardencore.Shoot) {
	if shoot.Spec.DNS == nil || old.Spec.DNS == nil || validation.PrimaryDNSProvider(shoot.Spec.DNS.Providers) != nil {
		return
	}
	primary := validation.PrimaryDNSProvider(old.Spec.DNS.Providers)
	if primary == nil {
		return
	}
	for i := range shoot.Spec.DNS.Providers {
		provider := &shoot.Spec.DNS.Providers[i]
		if ptr.Equal(provider.Type, primary.Type) && reflect.DeepEqual(provider.CredentialsRef, primary.CredentialsRef) {
			provider.Primary = ptr.To(true)
			return
		}
	}
}

// choosePrimaryProvider marks the first provider as primary if none is marked and the domain is not below a default
// domain.
func choosePrimaryProvider(dns *gardencore.DNS, domains []string) {
	if dns == nil || len(dns.Providers) == 0 || dns.Domain != nil && shootcommon.ParentDomain(*dns.Domain, domains) != "" {
		return
	}
	if validation.PrimaryDNSProvider(dns.Providers) == nil {
		dns.Providers[0].Primary = ptr.To(true)
	}
}

// shootSubdomain returns the Shoot's name, or a random string if the name is yet to be generated.
func shootSubdomain(shoot *gardencore.Shoot) string {
	if shoot.Name == "" && shoot.GenerateName != "" {
		return rand.String(len(shoot.GenerateName) + 5)
	}
	return shoot.Name
}

func validateShootDNS(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	domains, err := defaultDomains(ctx, deps, shoot)
	if err != nil {
		return err
	}
	if !hasDomain(shoot) {
		return nil
	}
	var errs field.ErrorList
	base := shootcommon.ParentDomain(*shoot.Spec.DNS.Domain, domains)
	if base != "" {
		errs = validateNoPrimaryProvider(shoot.Spec.DNS.Providers)
	}
	// Shoots that have been scheduled with a domain keep it, whatever was allowed then.
	if isNew := old.Spec.SeedName == nil || !hasDomain(old); isNew && !shootcommon.UnmanagedDNS(shoot) {
		project, err := shootcommon.Project(ctx, deps.Reader, shoot.Namespace)
		if err != nil {
			return err
		}
		if base != "" {
			errs = append(errs, validateDNSForm(shoot, project.Name+"."+base)...)
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), shoot.Name, errs)
	}
	return nil
}

func hasDomain(shoot *gardencore.Shoot) bool {
	return shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil
}

func validateNoPrimaryProvider(providers []gardencore.DNSProvider) field.ErrorList {
	var errs field.ErrorList
	for i, provider := range providers {
		if ptr.Deref(provider.Primary, false) {
			errs = append(errs, field.Invalid(dnsPath.Child("providers").Index(i).Child("primary"), true,
				"must not be set together with a default domain"))
		}
	}
	return errs
}

// validateDNSForm checks that the domain is <shoot>.<project>.<default domain>. The first part is not checked for a
// generated name.
func validateDNSForm(shoot *gardencore.Shoot, parent string) field.ErrorList {
	domain, path := *shoot.Spec.DNS.Domain, dnsPath.Child("domain")
	if generated := shoot.GenerateName; generated != "" && (shoot.Name == "" || strings.HasPrefix(shoot.Name, generated)) {
		if !strings.HasSuffix(domain, "."+parent) {
			return field.ErrorList{field.Invalid(path, domain, fmt.Sprintf("a domain below a default domain must end with .%s", parent))}
		}
		return nil
	}
	if expected := shoot.Name + "." + parent; domain != expected {
		return field.ErrorList{field.Invalid(path, domain,
			fmt.Sprintf("a domain below a default domain must be <shoot>.<project>.<default domain>, here %s", expected))}
	}
	return nil
}

// Annotations of the Secrets that hold default domains.
const (
	annotationDomain   = "dns.gardener.cloud/domain"
	annotationProvider = "dns.gardener.cloud/provider"
	annotationPriority = "dns.gardener.cloud/domain-default-priority"
)

// defaultDomains returns the default domains of the Shoot's seed or, if the seed has none or is not known yet, those of
// the landscape: the Secrets with this role in the namespace garden, the highest priority first.
func defaultDomains(ctx context.Context, deps plugin.Dependencies, shoot *gardencore.Shoot) ([]string, error) {
	seed, err := shootcommon.Seed(ctx, deps.Reader, shoot)
	if err != nil {
		return nil, err
	}
	if seed != nil && len(seed.Spec.DNS.Defaults) > 0 {
		return shootcommon.DefaultDomains(&seed.Spec), nil
	}
	secrets, err := plugin.SecretsWithRole(ctx, deps.Kube, v1beta1constants.GardenRoleDefaultDomain)
	if err != nil {
		return nil, fmt.Errorf("listing the Secrets with default domains: %v", err)
	}
	slices.SortStableFunc(secrets, func(a, b corev1.Secret) int { return cmp.Compare(domainPriority(b), domainPriority(a)) })
	var domains []string
	for _, secret := range secrets {
		domain := secret.Annotations[annotationDomain]
		if domain == "" || secret.Annotations[annotationProvider] == "" {
			return nil, field.Forbidden(dnsPath.Child("domain"),
				fmt.Sprintf("the operator has to give the default domain Secret %s/%s the annotations %s and %s first",
					secret.Namespace, secret.Name, annotationDomain, annotationProvider))
		}
		domains = append(domains, domain)
	}
	return domains, nil
}

// domainPriority returns 0 if the annotation is not a number.
func domainPriority(secret corev1.Secret) int {
	value, _ := strconv.Atoi(secret.Annotations[annotationPriority])
	return value
}
