package corevalidation

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// CIDR is a network range and the field from which it was read. A nil *CIDR stands for a field that is not set: the
// methods Validate… and Is… accept it and report nothing. The same holds for a range that cannot be parsed, except in
// ValidateParse and ValidateNotReserved, so that one mistake usually gives one error.
type CIDR struct {
	text string
	path *field.Path
	net  *net.IPNet
	err  error
}

// NewCIDR parses text, the value of the field at path.
func NewCIDR(text string, path *field.Path) *CIDR {
	_, ipNet, err := net.ParseCIDR(text)
	return &CIDR{text: text, path: path, net: ipNet, err: err}
}

// optionalCIDR is like NewCIDR, for a field that may be left out.
func optionalCIDR(text *string, path *field.Path) *CIDR {
	if text == nil {
		return nil
	}
	return NewCIDR(*text, path)
}

// Valid reports whether the range is set and could be parsed.
func (c *CIDR) Valid() bool { return c != nil && c.err == nil }

// IsIPv4 reports whether this is a valid IPv4 range.
func (c *CIDR) IsIPv4() bool { return c.Valid() && c.net.IP.To4() != nil }

// IsIPv6 reports whether this is a valid IPv6 range.
func (c *CIDR) IsIPv6() bool { return c.Valid() && c.net.IP.To4() == nil }

func (c *CIDR) invalid(detail string, args ...any) field.ErrorList {
	return field.ErrorList{field.Invalid(c.path, c.text, fmt.Sprintf(detail, args...))}
}

// ValidateParse refuses a range that is not in CIDR notation.
func (c *CIDR) ValidateParse() field.ErrorList {
	if c == nil || c.err == nil {
		return nil
	}
	return c.invalid("must be a network range in CIDR notation: %v", c.err)
}

// ValidateIPFamily refuses a range of another family; an unknown family accepts both.
func (c *CIDR) ValidateIPFamily(family gardencore.IPFamily) field.ErrorList {
	if (family == gardencore.IPFamilyIPv4 && c.IsIPv6()) || (family == gardencore.IPFamilyIPv6 && c.IsIPv4()) {
		return c.invalid("must be an %s range", family)
	}
	return nil
}

// ValidateCanonical refuses a range with host bits.
func (c *CIDR) ValidateCanonical() field.ErrorList {
	if !c.Valid() {
		return nil
	}
	if ip, _, _ := net.ParseCIDR(c.text); !c.net.IP.Equal(ip) {
		return c.invalid("must be in canonical form: %s", c.net)
	}
	return nil
}

// ValidateMaxSize refuses a range with fewer than prefix leading bits.
func (c *CIDR) ValidateMaxSize(prefix int) field.ErrorList {
	if !c.Valid() {
		return nil
	}
	if ones, _ := c.net.Mask.Size(); ones < prefix {
		return c.invalid("must not be larger than a /%d range", prefix)
	}
	return nil
}

// ValidateNotOverlap refuses other ranges that overlap with this range. The errors are about the other ranges.
func (c *CIDR) ValidateNotOverlap(others ...*CIDR) field.ErrorList {
	var errs field.ErrorList
	for _, other := range others {
		if c != other && c.Valid() && other.Valid() && overlap(c.net, other.net) {
			errs = append(errs, other.invalid("must not overlap with %s (%s)", c.path, c.text)...)
		}
	}
	return errs
}

// ValidateNotReserved refuses a range that overlaps with a range that Gardener itself uses. A range that cannot be
// parsed overlaps with all of them.
func (c *CIDR) ValidateNotReserved(kind string) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	for _, reserved := range reservedRanges {
		if NetworksIntersect(reserved.cidr, c.text) {
			errs = append(errs, c.invalid("%s network overlaps with the range reserved for %s (%s)", kind, reserved.use, reserved.cidr)...)
		}
	}
	return errs
}

var reservedRanges = []struct{ cidr, use string }{
	{constants.DefaultVPNRangeV6, "the VPN"},
	{constants.ReservedKubeApiServerMappingRange, "reaching the kube-apiserver"},
	{constants.ReservedSeedPodNetworkMappedRange, "mapping seed pods"},
	{constants.ReservedShootNodeNetworkMappedRange, "mapping shoot nodes"},
	{constants.ReservedShootServiceNetworkMappedRange, "mapping shoot services"},
	{constants.ReservedShootPodNetworkMappedRange, "mapping shoot pods"},
}

// forEachCIDR returns the errors that check finds in all ranges.
func forEachCIDR(cidrs []*CIDR, check func(*CIDR) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, c := range cidrs {
		errs = append(errs, check(c)...)
	}
	return errs
}

// ValidateCIDRsDisjoint refuses ranges that overlap with an earlier one of the list.
func ValidateCIDRsDisjoint(cidrs ...*CIDR) field.ErrorList {
	var errs field.ErrorList
	for i, c := range cidrs {
		errs = append(errs, c.ValidateNotOverlap(cidrs[i+1:]...)...)
	}
	return errs
}

// NetworksIntersect reports whether two ranges overlap. As in Gardener, a range that cannot be parsed overlaps with
// everything, so that it is refused.
func NetworksIntersect(a, b string) bool {
	_, netA, errA := net.ParseCIDR(a)
	_, netB, errB := net.ParseCIDR(b)
	return errA != nil || errB != nil || overlap(netA, netB)
}

func overlap(a, b *net.IPNet) bool { return a.Contains(b.IP) || b.Contains(a.IP) }

// ValidateNetworkDisjointedness checks the networks of a shoot's specification
// against those of its seed and the reserved ranges.
func ValidateNetworkDisjointedness(path *field.Path, shootNodes, shootPods, shootServices, seedNodes *string, seedPods,
	seedServices string) field.ErrorList {
	return validateAgainstSeed(path, optional(shootNodes), optional(shootPods), optional(shootServices), false, false,
		seedNodes, seedPods, seedServices)
}

// ValidateMultiNetworkDisjointedness checks the networks of a shoot's status against those of its seed and the
// reserved ranges. There may be several networks of each kind. A service network and, unless the shoot has no
// workers, a pod network are required.
func ValidateMultiNetworkDisjointedness(path *field.Path, shootNodes, shootPods, shootServices []string,
	seedNodes *string, seedPods, seedServices string, workerless bool) field.ErrorList {
	return validateAgainstSeed(path, shootNodes, shootPods, shootServices, !workerless, true, seedNodes, seedPods, seedServices)
}

func validateAgainstSeed(path *field.Path, nodes, pods, services []string, podsRequired, servicesRequired bool,
	seedNodes *string, seedPods, seedServices string) field.ErrorList {
	var errs field.ErrorList
	for _, shoot := range []struct {
		kind     string
		ranges   []string
		required bool
	}{{"node", nodes, false}, {"service", services, servicesRequired}, {"pod", pods, podsRequired}} {
		fldPath := path.Child(shoot.kind + "s")
		errs = append(errs, RequiredIf(shoot.required && len(shoot.ranges) == 0, fldPath, "must name at least one network range")...)
		for _, text := range shoot.ranges {
			cidr := NewCIDR(text, fldPath)
			if cidr.IsIPv6() { // IPv4 ranges are mapped in the VPN, so they may overlap
				errs = append(errs, validateNoSeedOverlap(cidr, shoot.kind, seedNodes, seedPods, seedServices)...)
			}
			errs = append(errs, cidr.ValidateNotReserved(shoot.kind)...)
		}
	}
	return errs
}

func validateNoSeedOverlap(cidr *CIDR, kind string, seedNodes *string, seedPods, seedServices string) field.ErrorList {
	var errs field.ErrorList
	for _, seed := range []struct {
		kind  string
		cidrs []string
	}{{"service", []string{seedServices}}, {"pod", []string{seedPods}}, {"node", optional(seedNodes)}} {
		for _, other := range seed.cidrs {
			if NetworksIntersect(other, cidr.text) {
				errs = append(errs, cidr.invalid("the shoot's %s network overlaps with the seed's %s network (%s)", kind, seed.kind, other)...)
			}
		}
	}
	return errs
}

// ValidateShootNetworkDisjointedness checks the networks of a shoot against each other.
func ValidateShootNetworkDisjointedness(path *field.Path, nodes, pods, services *string) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range []struct {
		blamed, other         *string
		blamedKind, otherKind string
	}{{services, pods, "service", "pod"}, {pods, nodes, "pod", "node"}, {services, nodes, "service", "node"}} {
		if pair.blamed != nil && pair.other != nil && NetworksIntersect(*pair.blamed, *pair.other) {
			errs = append(errs, field.Invalid(path.Child(pair.blamedKind+"s"), *pair.blamed,
				fmt.Sprintf("the shoot's %s network overlaps with its %s network (%s)", pair.blamedKind, pair.otherKind, *pair.other)))
		}
	}
	return errs
}

// optional returns a list with the value that p points to, empty for nil.
func optional[T any](p *T) []T {
	if p == nil {
		return nil
	}
	return []T{*p}
}
