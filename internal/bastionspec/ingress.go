package bastionspec

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxRules is how many rules an ingress may have.
	MaxRules = 256
	// MaxExcept is how many exceptions a rule may have.
	MaxExcept = 256
)

// Rule allows the addresses in CIDR, but for those in Except.
type Rule struct {
	CIDR   netip.Prefix   `json:"cidr"`
	Except []netip.Prefix `json:"except,omitempty"`
}

// Ingress is a list of firewall rules, which is never changed: a new list replaces it. An address may connect if one of the
// rules allows it; an empty list allows none.
type Ingress []Rule

// ParseIngress parses spec.ingress of a Bastion. It returns no rules if one of them is invalid. As in Gardener, errors
// have the path of the list, without an index.
func ParseIngress(blocks []networkingv1.IPBlock, path *field.Path) (Ingress, field.ErrorList) {
	if len(blocks) > MaxRules {
		return nil, field.ErrorList{field.TooMany(path, len(blocks), MaxRules)}
	}
	var rules Ingress
	var errs field.ErrorList
	for _, block := range blocks {
		rule, wrong := parseRule(block, path)
		rules, errs = append(rules, rule), append(errs, wrong...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return rules, nil
}

// parseRule requires each exception to be a proper part of the CIDR, as Kubernetes does in a NetworkPolicy.
func parseRule(block networkingv1.IPBlock, path *field.Path) (rule Rule, errs field.ErrorList) {
	var err error
	if rule.CIDR, err = parsePrefix(block.CIDR); err != nil {
		return rule, field.ErrorList{
			field.Invalid(path, block.CIDR, "must be a range of addresses in CIDR notation, like 198.51.100.0/24: "+err.Error())}
	}
	if len(block.Except) > MaxExcept {
		return rule, field.ErrorList{field.TooMany(path, len(block.Except), MaxExcept)}
	}
	for _, text := range block.Except {
		except, err := parsePrefix(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(
				path, text, "what is excepted must be a range of addresses in CIDR notation, like 198.51.100.128/25: "+err.Error()))
		case except.Bits() <= rule.CIDR.Bits() || !rule.CIDR.Contains(except.Addr()):
			errs = append(errs, field.Invalid(path, text, "what is excepted must be a part of "+block.CIDR+", and not all of it"))
		}
		rule.Except = append(rule.Except, except)
	}
	return rule, errs
}

// parsePrefix parses a CIDR like netip.ParsePrefix, and converts a range of IPv4-mapped IPv6 addresses to IPv4.
func parsePrefix(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4In6() {
		return prefix, err
	}
	if prefix.Bits() < 96 {
		return netip.Prefix{}, fmt.Errorf("a range of IPv4 that is written as IPv6 has at least 96 bits")
	}
	return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96), nil
}

// Check returns an error if a stored rule has an invalid CIDR.
func (i Ingress) Check() error {
	for _, rule := range i {
		if !rule.CIDR.IsValid() || slices.ContainsFunc(rule.Except, func(except netip.Prefix) bool { return !except.IsValid() }) {
			return fmt.Errorf("an ingress rule has a range that is no CIDR")
		}
	}
	return nil
}

// Allows reports whether a client with the address may connect. It returns false if remote is not a TCP address.
func (i Ingress) Allows(remote net.Addr) bool {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return false
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(i, func(rule Rule) bool {
		return rule.CIDR.Contains(address) &&
			!slices.ContainsFunc(rule.Except, func(except netip.Prefix) bool { return except.Contains(address) })
	})
}
