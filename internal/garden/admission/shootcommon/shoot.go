package shootcommon

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/utils/ptr"
)

// Workerless reports whether a Shoot has no worker pools.
func Workerless(shoot *gardencore.Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

// Hibernated reports whether a Shoot's spec enables hibernation.
func Hibernated(shoot *gardencore.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// UpdatesInPlace reports whether the nodes of a worker pool are updated in place when their machine image or Kubernetes
// version changes.
func UpdatesInPlace(worker *gardencore.Worker) bool {
	strategy := ptr.Deref(worker.UpdateStrategy, "")
	return strategy == gardencore.AutoInPlaceUpdate || strategy == gardencore.ManualInPlaceUpdate
}

// Worker returns the worker pool with the given name, and nil if there is none.
func Worker(workers []gardencore.Worker, name string) *gardencore.Worker {
	return find(workers, func(w *gardencore.Worker) bool { return w.Name == name })
}

// NginxIngress reports whether the nginx ingress add-on is enabled.
func NginxIngress(addons *gardencore.Addons) bool {
	return addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled
}

// HasIPFamily reports whether a Shoot has the given IP family.
func HasIPFamily(shoot *gardencore.Shoot, family gardencore.IPFamily) bool {
	return shoot.Spec.Networking != nil && slices.Contains(shoot.Spec.Networking.IPFamilies, family)
}

// PrimaryDNSProvider returns the first provider that is marked as primary, and nil if none is.
func PrimaryDNSProvider(providers []gardencore.DNSProvider) *gardencore.DNSProvider {
	return find(providers, func(p *gardencore.DNSProvider) bool { return ptr.Deref(p.Primary, false) })
}

// UnmanagedDNS reports whether the primary DNS provider, or the first one if none is marked as primary, has the type
// unmanaged. The user manages the DNS records of such a Shoot.
func UnmanagedDNS(shoot *gardencore.Shoot) bool {
	if shoot.Spec.DNS == nil || len(shoot.Spec.DNS.Providers) == 0 {
		return false
	}
	provider := PrimaryDNSProvider(shoot.Spec.DNS.Providers)
	if provider == nil {
		provider = &shoot.Spec.DNS.Providers[0]
	}
	return ptr.Deref(provider.Type, "") == gardencore.DNSUnmanaged
}

// find returns a pointer to the first matching item of the slice, and nil if there is none.
func find[T any](items []T, matches func(*T) bool) *T {
	for i := range items {
		if matches(&items[i]) {
			return &items[i]
		}
	}
	return nil
}
