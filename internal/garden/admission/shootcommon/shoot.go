package shootcommon

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/utils/ptr"
)

// Workerless says whether a Shoot is only a control plane.
func Workerless(shoot *gardencore.Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

// Hibernated says whether a Shoot is meant to sleep.
func Hibernated(shoot *gardencore.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// UpdatesInPlace says whether the nodes of a worker pool stay when their machine image or Kubernetes version changes.
func UpdatesInPlace(worker *gardencore.Worker) bool {
	strategy := ptr.Deref(worker.UpdateStrategy, "")
	return strategy == gardencore.AutoInPlaceUpdate || strategy == gardencore.ManualInPlaceUpdate
}

// Worker is the worker pool of this name; nil if there is none.
func Worker(workers []gardencore.Worker, name string) *gardencore.Worker {
	return find(workers, func(w *gardencore.Worker) bool { return w.Name == name })
}

// NginxIngress says whether the add-on of this name is on.
func NginxIngress(addons *gardencore.Addons) bool {
	return addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled
}

// UsesFamily says whether a Shoot has addresses of this family.
func UsesFamily(shoot *gardencore.Shoot, family gardencore.IPFamily) bool {
	return shoot.Spec.Networking != nil && slices.Contains(shoot.Spec.Networking.IPFamilies, family)
}

// PrimaryDNSProvider is the first of the providers that is marked as the primary one; nil if none is.
func PrimaryDNSProvider(providers []gardencore.DNSProvider) *gardencore.DNSProvider {
	return find(providers, func(p *gardencore.DNSProvider) bool { return ptr.Deref(p.Primary, false) })
}

// UnmanagedDNS says whether the user manages the Shoot's DNS records: the primary provider, or the first if none is
// marked, says so.
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

// find is the first item that matches, in place; nil if none does.
func find[T any](items []T, matches func(*T) bool) *T {
	for i := range items {
		if matches(&items[i]) {
			return &items[i]
		}
	}
	return nil
}
