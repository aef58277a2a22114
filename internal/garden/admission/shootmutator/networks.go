package shootmutator

import (
	"crypto/rand"
	"fmt"
	"net"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// defaultNetworks sets the pod and service networks to the defaults of the seed, as soon as it is known, if the Shoot
// uses their IP family. A Shoot without workers has no infrastructure that could provide IPv6 addresses for services,
// so a random range is used for it.
func defaultNetworks(shoot *gardencore.Shoot, seed *gardencore.Seed) {
	networking, workerless := shoot.Spec.Networking, shootcommon.Workerless(shoot)
	if seed == nil || networking == nil {
		return
	}
	defaults := ptr.Deref(seed.Spec.Networks.ShootDefaults, gardencore.ShootNetworks{})
	if networking.Pods == nil && !workerless {
		networking.Pods = ifUsed(shoot, defaults.Pods)
	}
	if networking.Services == nil {
		networking.Services = ifUsed(shoot, defaults.Services)
	}
	if networking.Services == nil && workerless && shootcommon.HasIPFamily(shoot, gardencore.IPFamilyIPv6) {
		networking.Services = ptr.To(randomServiceRange())
	}
}

// ifUsed returns a copy of cidr if the Shoot uses its IP family, else nil.
func ifUsed(shoot *gardencore.Shoot, cidr *string) *string {
	if cidr == nil {
		return nil
	}
	ip, _, err := net.ParseCIDR(*cidr)
	if err != nil {
		return nil
	}
	family := gardencore.IPFamilyIPv6
	if ip.To4() != nil {
		family = gardencore.IPFamilyIPv4
	}
	if !shootcommon.HasIPFamily(shoot, family) {
		return nil
	}
	return ptr.To(*cidr)
}

// randomServiceRange returns a /112 range of unique local addresses (RFC 4193): fd, 40 random bits, zeros.
func randomServiceRange() string {
	var id [5]byte
	_, _ = rand.Read(id[:]) // never fails
	return fmt.Sprintf("fd%02x:%02x%02x:%02x%02x::/112", id[0], id[1], id[2], id[3], id[4])
}
