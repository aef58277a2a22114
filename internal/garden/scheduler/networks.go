package scheduler

import (
	"fmt"
	"net/netip"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// reservedRanges are the ranges to which the VPN between a seed and its Shoots maps networks.
var reservedRanges = []string{
	v1beta1constants.DefaultVPNRangeV6,
	v1beta1constants.ReservedKubeApiServerMappingRange,
	v1beta1constants.ReservedSeedPodNetworkMappedRange,
	v1beta1constants.ReservedShootNodeNetworkMappedRange,
	v1beta1constants.ReservedShootServiceNetworkMappedRange,
	v1beta1constants.ReservedShootPodNetworkMappedRange,
}

// network is a network of a Shoot or a seed.
type network struct{ purpose, cidr string }

// hasFreeNetworks refuses a seed if a network of the Shoot overlaps with the reserved ranges, or an IPv6 network of
// the Shoot with one of the seed. IPv4 networks of both may overlap, because the VPN maps them to reserved ranges.
func hasFreeNetworks(l *Landscape, seed *gardencorev1beta1.Seed) string {
	if l.Shoot.Spec.Networking == nil { // workerless Shoots may have no networking
		return ""
	}
	if why := missingNetwork(l.Shoot); why != "" {
		return why
	}
	for _, wanted := range shootNetworks(l.Shoot, seed) {
		prefix, err := netip.ParsePrefix(wanted.cidr)
		if err != nil {
			return fmt.Sprintf("Shoot's %s network %q is not a CIDR", wanted.purpose, wanted.cidr)
		}
		if prefix.Addr().Is6() {
			for _, taken := range seedNetworks(seed) {
				if overlaps(prefix, taken.cidr) {
					return fmt.Sprintf("Shoot's %s network %s overlaps with the seed's %s network %s", wanted.purpose, wanted.cidr,
						taken.purpose, taken.cidr)
				}
			}
		}
		for _, reserved := range reservedRanges {
			if overlaps(prefix, reserved) {
				return fmt.Sprintf("Shoot's %s network %s overlaps with the reserved range %s", wanted.purpose, wanted.cidr, reserved)
			}
		}
	}
	return ""
}

// missingNetwork returns which network is missing in the status of a Shoot: once there are networks, they must be
// complete.
func missingNetwork(shoot *gardencorev1beta1.Shoot) string {
	status := shoot.Status.Networking
	switch {
	case status == nil:
	case len(status.Services) == 0:
		return "Shoot's status has no service network"
	case len(status.Pods) == 0 && len(shoot.Spec.Provider.Workers) > 0:
		return "Shoot's status has no pod network"
	}
	return ""
}

// shootNetworks returns the networks of the Shoot, including those that it would get from the seed's defaults.
func shootNetworks(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) (all []network) {
	spec := shoot.Spec.Networking
	pods, services := spec.Pods, spec.Services
	if defaults := seed.Spec.Networks.ShootDefaults; defaults != nil {
		if pods == nil && len(shoot.Spec.Provider.Workers) > 0 && ofFamily(defaults.Pods, spec.IPFamilies) {
			pods = defaults.Pods
		}
		if services == nil && ofFamily(defaults.Services, spec.IPFamilies) {
			services = defaults.Services
		}
	}
	for purpose, cidr := range map[string]*string{"node": spec.Nodes, "pod": pods, "service": services} {
		if cidr != nil {
			all = append(all, network{purpose, *cidr})
		}
	}
	if status := shoot.Status.Networking; status != nil {
		for purpose, cidrs := range map[string][]string{"node": status.Nodes, "pod": status.Pods, "service": status.Services} {
			for _, cidr := range cidrs {
				all = append(all, network{purpose, cidr})
			}
		}
	}
	// Sorted, so that the message about a Shoot does not change.
	slices.SortStableFunc(all, func(a, b network) int {
		return slices.Compare([]string{a.purpose, a.cidr}, []string{b.purpose, b.cidr})
	})
	return all
}

func seedNetworks(seed *gardencorev1beta1.Seed) []network {
	networks := []network{{"pod", seed.Spec.Networks.Pods}, {"service", seed.Spec.Networks.Services}}
	if nodes := seed.Spec.Networks.Nodes; nodes != nil {
		networks = append(networks, network{"node", *nodes})
	}
	return networks
}

func ofFamily(cidr *string, families []gardencorev1beta1.IPFamily) bool {
	if cidr == nil {
		return false
	}
	prefix, err := netip.ParsePrefix(*cidr)
	if err != nil {
		return false
	}
	family := gardencorev1beta1.IPFamilyIPv6
	if prefix.Addr().Is4() {
		family = gardencorev1beta1.IPFamilyIPv4
	}
	return slices.Contains(families, family)
}

func overlaps(prefix netip.Prefix, cidr string) bool {
	other, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Overlaps(other)
}
