// Package seedcommon is shared by the admission plugins for Seeds and ManagedSeeds: it lists the Shoots of a seed,
// protects the settings they rely on, sets the labels with seed names, and checks the credentials of backups.
//
// It may import the plugin and shootcommon packages and the Gardener API types.
package seedcommon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

const (
	annotationDNSProvider = "dns.gardener.cloud/provider"
	annotationDNSDomain   = "dns.gardener.cloud/domain"
)

// Shoots returns the Shoots that are scheduled to the seed or still run on it. A Shoot of which both is true is
// returned twice.
func Shoots(ctx context.Context, r plugin.Reader, seed string) ([]*gardencore.Shoot, error) {
	if seed == "" {
		return nil, nil
	}
	var shoots []*gardencore.Shoot
	for _, by := range []struct {
		field string
		name  func(*gardencore.Shoot) *string
	}{
		{gardencore.ShootSeedName, func(s *gardencore.Shoot) *string { return s.Spec.SeedName }},
		{gardencore.ShootStatusSeedName, func(s *gardencore.Shoot) *string { return s.Status.SeedName }},
	} {
		list, err := plugin.List[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), "", fields.OneTermEqualSelector(by.field, seed))
		if err != nil {
			return nil, fmt.Errorf("listing the shoots of seed %q: %v", seed, err)
		}
		for _, shoot := range list {
			if ptr.Deref(by.name(shoot), "") == seed {
				shoots = append(shoots, shoot)
			}
		}
	}
	return shoots, nil
}

// SetNameLabels replaces the object's seed name labels: one is set for each name that is not empty.
func SetNameLabels(obj metav1.Object, names ...string) {
	labels := obj.GetLabels()
	for key := range labels {
		if strings.HasPrefix(key, v1beta1constants.LabelPrefixSeedName) {
			delete(labels, key)
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1beta1constants.LabelPrefixSeedName+name] = "true"
	}
	obj.SetLabels(labels)
}

// ValidateChange refuses changes of a seed that would break its Shoots: removed zones, another internal domain, and
// removed default domains that are parents of the Shoots' domains.
func ValidateChange(ctx context.Context, r plugin.Reader, kube kubernetes.Interface, seed string, newSpec,
	oldSpec *gardencore.SeedSpec, path *field.Path) (field.ErrorList, error) {
	removedZones := sets.New(oldSpec.Provider.Zones...).Delete(newSpec.Provider.Zones...)
	newDomains := sets.New(shootcommon.DefaultDomains(newSpec)...)
	oldDomains := sets.New(shootcommon.DefaultDomains(oldSpec)...)
	newInternal, oldInternal := newSpec.DNS.Internal, oldSpec.DNS.Internal
	otherInternal := newInternal != nil && oldInternal != nil && newInternal.Domain != oldInternal.Domain
	if removedZones.Len() == 0 && !otherInternal && newDomains.Equal(oldDomains) {
		return nil, nil
	}

	shoots, err := Shoots(ctx, r, seed)
	if err != nil || len(shoots) == 0 {
		return nil, err
	}
	var errs field.ErrorList
	if removedZones.Len() > 0 {
		errs = append(errs, field.Forbidden(
			path.Child("provider", "zones"), fmt.Sprintf("must keep %v while shoots are on the seed", sets.List(removedZones))))
	}
	if otherInternal {
		errs = append(errs, field.Forbidden(path.Child("dns", "internal", "domain"),
			fmt.Sprintf("must stay %q while shoots are on the seed", oldInternal.Domain)))
	}
	if oldDomains.Len() == 0 && newDomains.Len() > 0 {
		// Without default domains of the seed, its Shoots used those of the whole landscape.
		secrets, err := DefaultDomainSecrets(ctx, kube)
		if err != nil {
			return nil, err
		}
		for _, secret := range secrets {
			oldDomains.Insert(secret.Domain)
		}
	}
	if missing := used(oldDomains, shoots).Difference(newDomains); missing.Len() > 0 {
		errs = append(errs, field.Forbidden(path.Child("dns", "defaults"),
			fmt.Sprintf("must have %v while shoots on the seed have names below", sets.List(missing))))
	}
	return errs, nil
}

// used returns the domains that are parents of the Shoots' domains.
func used(domains sets.Set[string], shoots []*gardencore.Shoot) sets.Set[string] {
	inUse := sets.New[string]()
	for domain := range domains {
		if slices.ContainsFunc(shoots, func(shoot *gardencore.Shoot) bool {
			return shoot.Spec.DNS != nil && strings.HasSuffix(ptr.Deref(shoot.Spec.DNS.Domain, ""), "."+domain)
		}) {
			inUse.Insert(domain)
		}
	}
	return inUse
}

// DomainSecret is a Secret with the credentials of a DNS provider for a domain.
type DomainSecret struct {
	Provider, Domain string
	Ref              corev1.ObjectReference
}

// DefaultDomainSecrets returns the Secrets of the landscape's default domains, which are used for the Shoots on seeds
// without default domains of their own. It returns an error if one lacks the annotation for its provider or domain.
func DefaultDomainSecrets(ctx context.Context, kube kubernetes.Interface) ([]DomainSecret, error) {
	list, err := plugin.SecretsWithRole(ctx, kube, v1beta1constants.GardenRoleDefaultDomain)
	if err != nil {
		return nil, fmt.Errorf("listing the secrets of default domains: %v", err)
	}
	var secrets []DomainSecret
	for _, secret := range list {
		provider, domain := secret.Annotations[annotationDNSProvider], secret.Annotations[annotationDNSDomain]
		if provider == "" || domain == "" {
			return nil, fmt.Errorf("reading the secrets of default domains: %s/%s must have the annotations %s and %s",
				secret.Namespace, secret.Name, annotationDNSProvider, annotationDNSDomain)
		}
		secrets = append(secrets, DomainSecret{Provider: provider, Domain: domain, Ref: corev1.ObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name}})
	}
	return secrets, nil
}

// ValidateCredentialsType returns a field error if ref, at path, is a WorkloadIdentity that does not exist or is not of
// the provider's type. It accepts references to other kinds.
func ValidateCredentialsType(ctx context.Context, r plugin.Reader, ref *corev1.ObjectReference, provider string, path *field.Path) error {
	if ref == nil || ref.APIVersion != securityv1alpha1.SchemeGroupVersion.String() || ref.Kind != "WorkloadIdentity" {
		return nil
	}
	identity, err := shootcommon.Get[*security.WorkloadIdentity](ctx, r, security.Resource("workloadidentities"),
		ref.Namespace, ref.Name, path)
	if err != nil {
		return err
	}
	if identity.Spec.TargetSystem.Type != provider {
		return field.Invalid(path, ref.Namespace+"/"+ref.Name,
			fmt.Sprintf("is a WorkloadIdentity of type %q; must be one of type %q", identity.Spec.TargetSystem.Type, provider))
	}
	return nil
}
