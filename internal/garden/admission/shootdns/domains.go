package shootdns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

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
	slices.SortStableFunc(secrets, func(a, b corev1.Secret) int { return cmp.Compare(priority(b), priority(a)) })
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

// priority returns 0 if the annotation is not a number.
func priority(secret corev1.Secret) int {
	value, _ := strconv.Atoi(secret.Annotations[annotationPriority])
	return value
}
