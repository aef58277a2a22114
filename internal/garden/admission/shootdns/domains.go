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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func (d dns) defaultDomains(ctx context.Context, shoot *gardencore.Shoot) ([]string, error) {
	seed, err := shootcommon.Seed(ctx, d.deps.Reader, shoot)
	if err != nil {
		return nil, err
	}
	var domains []string
	if seed != nil && len(seed.Spec.DNS.Defaults) > 0 {
		for _, config := range seed.Spec.DNS.Defaults {
			domains = append(domains, config.Domain)
		}
		return domains, nil
	}
	secrets, err := d.deps.Kube.CoreV1().Secrets(v1beta1constants.GardenNamespace).List(ctx, metav1.ListOptions{
		ResourceVersion: plugin.FromCache,
		LabelSelector:   v1beta1constants.GardenRole + "=" + v1beta1constants.GardenRoleDefaultDomain})
	if err != nil {
		return nil, fmt.Errorf("listing the Secrets with default domains: %v", err)
	}
	slices.SortStableFunc(secrets.Items, func(a, b corev1.Secret) int { return cmp.Compare(priority(b), priority(a)) })
	for _, secret := range secrets.Items {
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
