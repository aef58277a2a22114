// Package shootcommon is shared by the admission plugins for Shoots: it reads the objects that a Shoot refers to,
// and answers simple questions about a Shoot.
//
// It may import the plugin package, the validation helpers and the Gardener API types. Its functions do not change
// their arguments.
package shootcommon

import (
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Workerless reports whether a Shoot has no worker pools.
func Workerless(shoot *gardencore.Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

// WorkerZones returns the zones of all worker pools.
func WorkerZones(shoot *gardencore.Shoot) sets.Set[string] {
	zones := sets.New[string]()
	for _, worker := range shoot.Spec.Provider.Workers {
		zones.Insert(worker.Zones...)
	}
	return zones
}

// MinimumNodes returns the sum of the minimums of all worker pools.
func MinimumNodes(shoot *gardencore.Shoot) int64 {
	var minimum int64
	for _, worker := range shoot.Spec.Provider.Workers {
		minimum += int64(worker.Minimum)
	}
	return minimum
}

// HasIPFamily reports whether a Shoot has the given IP family.
func HasIPFamily(shoot *gardencore.Shoot, family gardencore.IPFamily) bool {
	return shoot.Spec.Networking != nil && slices.Contains(shoot.Spec.Networking.IPFamilies, family)
}

// DefaultDomains returns the default domains of a seed.
func DefaultDomains(seed *gardencore.SeedSpec) []string {
	var domains []string
	for _, config := range seed.DNS.Defaults {
		domains = append(domains, config.Domain)
	}
	return domains
}

// ParentDomain returns the first of the parents that the domain is below, and "" if there is none.
func ParentDomain(domain string, parents []string) string {
	for _, parent := range parents {
		if strings.HasSuffix(domain, "."+parent) {
			return parent
		}
	}
	return ""
}

// UnmanagedDNS reports whether the primary DNS provider, or the first one if none is marked as primary, has the type
// unmanaged. The user manages the DNS records of such a Shoot.
func UnmanagedDNS(shoot *gardencore.Shoot) bool {
	if shoot.Spec.DNS == nil || len(shoot.Spec.DNS.Providers) == 0 {
		return false
	}
	provider := validation.PrimaryDNSProvider(shoot.Spec.DNS.Providers)
	if provider == nil {
		provider = &shoot.Spec.DNS.Providers[0]
	}
	return ptr.Deref(provider.Type, "") == gardencore.DNSUnmanaged
}
