package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// These are the annotations of the secrets with domains, as in Gardener.
const (
	domainAnnotation   = "dns.gardener.cloud/domain"
	providerAnnotation = "dns.gardener.cloud/provider"
	priorityAnnotation = "dns.gardener.cloud/domain-default-priority"
)

// domain is a domain and the type of DNS provider that serves it.
type domain struct{ name, provider string }

// domains are the domains that a Seed offers to its Shoots.
type domains struct {
	// internal is the internal domain, and empty if there is none.
	internal domain
	// defaults are the default domains, the highest priority first.
	defaults []domain
}

// providersFor returns the types of DNS providers that a Shoot needs; they may include "" and "unmanaged".
func (d domains) providersFor(shoot *corev1beta1.Shoot) []string {
	providers := []string{d.internal.provider}
	if shoot.Spec.DNS == nil {
		return providers
	}
	for _, provider := range shoot.Spec.DNS.Providers {
		if ptr.Deref(provider.Primary, false) {
			providers = append(providers, ptr.Deref(provider.Type, ""))
		}
	}
	i := slices.IndexFunc(d.defaults, func(d domain) bool {
		return strings.HasSuffix(ptr.Deref(shoot.Spec.DNS.Domain, ""), "."+d.name)
	})
	if i >= 0 {
		providers = append(providers, d.defaults[i].provider)
	}
	return providers
}

// domainsOf reads the domains of a Seed from its spec or, if not set there, from the secrets in its namespace.
func (r *Reconciler) domainsOf(ctx context.Context, seed *corev1beta1.Seed) (d domains, err error) {
	var internal []domain
	if dns := seed.Spec.DNS.Internal; dns != nil {
		internal = []domain{{dns.Domain, dns.Type}}
	} else if internal, err = r.domainsOfSecrets(ctx, seed, constants.GardenRoleInternalDomain); err != nil {
		return d, err
	}
	if len(internal) > 1 {
		return d, fmt.Errorf("there can be only one internal domain, but the namespace %q has %d secrets with the role %s",
			seedidentity.NamespacePrefix+seed.Name, len(internal), constants.GardenRoleInternalDomain)
	}
	if len(internal) == 1 {
		d.internal = internal[0]
	}
	for _, dns := range seed.Spec.DNS.Defaults {
		d.defaults = append(d.defaults, domain{dns.Domain, dns.Type})
	}
	if len(d.defaults) == 0 {
		d.defaults, err = r.domainsOfSecrets(ctx, seed, constants.GardenRoleDefaultDomain)
	}
	return d, err
}

// domainsOfSecrets reads only the metadata of secrets, which contains the domains and providers.
func (r *Reconciler) domainsOfSecrets(ctx context.Context, seed *corev1beta1.Seed, role string) (found []domain, err error) {
	secrets := kit.MetadataList(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.Reader.List(ctx, secrets, client.InNamespace(seedidentity.NamespacePrefix+seed.Name),
		client.MatchingLabels{constants.GardenRole: role}); err != nil {
		return nil, fmt.Errorf("listing the secrets of the Seed %q with the role %s: %w", seed.Name, role, err)
	}
	priority := func(secret metav1.PartialObjectMetadata) int {
		value, _ := strconv.Atoi(secret.Annotations[priorityAnnotation]) // as in Gardener, what is not a number counts as 0
		return value
	}
	slices.SortStableFunc(secrets.Items, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(priority(b), priority(a)) })
	for _, secret := range secrets.Items {
		d := domain{secret.Annotations[domainAnnotation], secret.Annotations[providerAnnotation]}
		if d.name == "" || d.provider == "" {
			return nil, fmt.Errorf("the secret %s/%s has the role %s, and therefore needs the annotations %s and %s",
				secret.Namespace, secret.Name, role, domainAnnotation, providerAnnotation)
		}
		found = append(found, d)
	}
	return found, nil
}
