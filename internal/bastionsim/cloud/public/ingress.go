package public

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

const (
	// MaxRules is how many rules an ingress may have.
	MaxRules = 256
	// MaxExcept is how many exceptions a rule may have.
	MaxExcept = 256
)

// Rule allows the addresses of a network, but for exceptions.
type Rule struct {
	CIDR   netip.Prefix   `json:"cidr"`
	Except []netip.Prefix `json:"except,omitempty"`
}

// Ingress says who may connect: those that one of the rules allows.
type Ingress []Rule

// Check says what is wrong with the rules.
func (i Ingress) Check() error {
	if len(i) > MaxRules {
		return fmt.Errorf("%d ingress rules are more than the %d that there may be", len(i), MaxRules)
	}
	for _, rule := range i {
		if !rule.CIDR.IsValid() {
			return fmt.Errorf("an ingress rule has no valid CIDR")
		}
		if len(rule.Except) > MaxExcept {
			return fmt.Errorf("the ingress rule for %s has %d exceptions, more than the %d that it may have", rule.CIDR, len(rule.Except), MaxExcept)
		}
		for _, except := range rule.Except {
			if !except.IsValid() {
				return fmt.Errorf("the ingress rule for %s has an exception that is no CIDR", rule.CIDR)
			}
		}
	}
	return nil
}

// Clone is a copy that shares nothing with the original.
func (i Ingress) Clone() Ingress {
	rules := slices.Clone(i)
	for n := range rules {
		rules[n].Except = slices.Clone(rules[n].Except)
	}
	return rules
}

// Allows says whether a connection from an address is let in. An address that cannot be understood is not.
func (i Ingress) Allows(remote net.Addr) bool {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return false
	}
	address := tcp.AddrPort().Addr().Unmap()
	return slices.ContainsFunc(i, func(rule Rule) bool {
		return contains(rule.CIDR, address) &&
			!slices.ContainsFunc(rule.Except, func(except netip.Prefix) bool { return contains(except, address) })
	})
}

// contains is Contains for prefixes of IPv4 that are written as IPv6, too, and for addresses with a zone.
func contains(prefix netip.Prefix, address netip.Addr) bool {
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Contains(address.WithZone(""))
}
