package bastionspec

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestIngress(t *testing.T) {
	rules, errs := ParseIngress([]networkingv1.IPBlock{
		{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16"}}, {CIDR: "10.1.2.3/32"}, {CIDR: "2001:db8::/32"}, {CIDR: "::ffff:192.0.2.0/120"},
	}, field.NewPath("ingress"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for address, want := range map[string]bool{
		"10.0.0.1": true, "10.1.0.1": false, "10.1.2.3": true, "11.0.0.1": false, "::ffff:10.0.0.1": true, "::ffff:10.1.0.1": false,
		"2001:db8::1": true, "2001:db9::1": false, "192.0.2.7": true, "192.0.3.7": false, "127.0.0.1": false,
	} {
		remote := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1))
		if rules.Allows(remote) != want {
			t.Errorf("%s: %t", address, !want)
		}
		if (Ingress{}).Allows(remote) {
			t.Errorf("no rules allow %s", address)
		}
	}
	everything := Ingress{{CIDR: netip.MustParsePrefix("0.0.0.0/0")}}
	if everything.Allows(&net.UnixAddr{Name: "x"}) || everything.Allows(nil) || everything.Allows(&net.TCPAddr{}) {
		t.Error("what is no address is allowed")
	}
	for _, wrong := range []Ingress{{{}}, {{CIDR: everything[0].CIDR, Except: []netip.Prefix{{}}}}} {
		if wrong.Check() == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

// TestIngressRefused verifies that one invalid rule makes ParseIngress return none.
func TestIngressRefused(t *testing.T) {
	fine := networkingv1.IPBlock{CIDR: "198.51.100.0/24"}
	for name, test := range map[string]struct {
		blocks []networkingv1.IPBlock
		says   string
	}{
		"leading zero": {[]networkingv1.IPBlock{fine, {CIDR: "10.0.0.0/08"}}, `"10.0.0.0/08": must be a range`},
		"octal":        {[]networkingv1.IPBlock{{CIDR: "010.0.0.0/8"}}, "must be a range"},
		"zone":         {[]networkingv1.IPBlock{{CIDR: "fe80::%eth0/64"}}, "must be a range"},
		"no bits":      {[]networkingv1.IPBlock{{CIDR: "10.0.0.1"}}, "must be a range"},
		"half of IPv4": {[]networkingv1.IPBlock{{CIDR: "::ffff:10.0.0.0/90"}}, "at least 96 bits"},
		"too many":     {slices.Repeat([]networkingv1.IPBlock{fine}, MaxRules+1), "must have at most 256 items"},
		"too many excepted": {[]networkingv1.IPBlock{{CIDR: "10.0.0.0/8", Except: slices.Repeat([]string{"10.1.0.0/16"}, MaxExcept+1)}},
			"must have at most 256 items"},
		"excepted zero": {[]networkingv1.IPBlock{{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/016"}}}, "what is excepted must be a range"},
		"excepts all":   {[]networkingv1.IPBlock{{CIDR: "10.0.0.0/8", Except: []string{"10.0.0.0/8"}}}, "must be a part"},
	} {
		rules, errs := ParseIngress(test.blocks, field.NewPath("spec", "ingress"))
		if rules != nil || len(errs) != 1 || errs[0].Field != "spec.ingress" || !strings.Contains(errs[0].Error(), test.says) {
			t.Errorf("%s: %v, %v", name, rules, errs)
		}
	}
	if rules, errs := ParseIngress(slices.Repeat([]networkingv1.IPBlock{fine}, MaxRules), nil); len(rules) != MaxRules || len(errs) > 0 {
		t.Errorf("%d rules, %v", len(rules), errs)
	}
}
