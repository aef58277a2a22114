package corevalidation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func TestCIDR(t *testing.T) {
	v4, v6, bad := NewCIDR("10.0.0.0/16", testPath.Child("v4")), NewCIDR("2001:db8::/64", testPath.Child("v6")),
		NewCIDR("10.0.0.0", testPath.Child("bad"))
	var unset *CIDR
	for _, c := range []struct {
		name string
		got  field.ErrorList
		want []string
	}{
		{"parse", forEachCIDR([]*CIDR{v4, v6, bad, unset}, (*CIDR).ValidateParse), []string{"Invalid p.bad"}},
		{"IPv4", forEachCIDR([]*CIDR{v4, v6, bad, unset}, func(c *CIDR) field.ErrorList { return c.ValidateIPFamily(gardencore.IPFamilyIPv4) }),
			[]string{"Invalid p.v6"}},
		{"IPv6", forEachCIDR([]*CIDR{v4, v6, bad, unset}, func(c *CIDR) field.ErrorList { return c.ValidateIPFamily(gardencore.IPFamilyIPv6) }),
			[]string{"Invalid p.v4"}},
		{"canonical", NewCIDR("10.1.0.0/8", testPath).ValidateCanonical(), []string{"Invalid p"}},
		{"size", v4.ValidateMaxSize(17), []string{"Invalid p.v4"}},
		{"size at the limit", v4.ValidateMaxSize(16), nil},
		{"not overlapping", v4.ValidateNotOverlap(v4, v6, bad, unset, NewCIDR("10.1.0.0/16", testPath)), nil},
		{"overlapping", v4.ValidateNotOverlap(NewCIDR("10.0.0.0/8", testPath)), []string{"Invalid p"}},
		{"disjoint", ValidateCIDRsDisjoint(v4, unset, NewCIDR("10.0.1.0/24", testPath.Child("a")), NewCIDR("10.0.2.0/24", testPath.Child("b"))),
			[]string{"Invalid p.a", "Invalid p.b"}},
		{"reserved", NewCIDR("240.0.0.0/4", testPath).ValidateNotReserved("pod"),
			[]string{"Invalid p", "Invalid p", "Invalid p", "Invalid p", "Invalid p"}},
		{"not reserved", v4.ValidateNotReserved("pod"), nil},
	} {
		t.Run(c.name, func(t *testing.T) { wantErrors(t, c.got, c.want...) })
	}
}

func TestNetworkDisjointedness(t *testing.T) {
	a, b, v6 := ptr.To("10.0.0.0/16"), ptr.To("10.1.0.0/16"), ptr.To("2001:db8:1::/64")
	for _, c := range []struct {
		name string
		got  field.ErrorList
		want []string
	}{
		{"IPv4 as in the seed", ValidateNetworkDisjointedness(testPath, a, b, nil, a, *b, *b), nil},
		{"IPv6 as in the seed", ValidateNetworkDisjointedness(testPath, v6, nil, nil, v6, *b, *v6),
			[]string{"Invalid p.nodes", "Invalid p.nodes"}},
		{"reserved", ValidateNetworkDisjointedness(testPath, nil, ptr.To("241.1.0.0/16"), nil, nil, *a, *b), []string{"Invalid p.pods"}},
		{"several, incomplete", ValidateMultiNetworkDisjointedness(testPath, nil, nil, nil, nil, *a, *b, false),
			[]string{"Required p.pods", "Required p.services"}},
		{"several, workerless", ValidateMultiNetworkDisjointedness(testPath, nil, nil, []string{*a, *b}, nil, *a, *b, true), nil},
		{"own networks", ValidateShootNetworkDisjointedness(testPath, a, b, ptr.To("10.2.0.0/16")), nil},
		{"own networks alike", ValidateShootNetworkDisjointedness(testPath, a, a, a),
			[]string{"Invalid p.services", "Invalid p.pods", "Invalid p.services"}},
		{"own networks unset", ValidateShootNetworkDisjointedness(testPath, nil, a, nil), nil},
	} {
		t.Run(c.name, func(t *testing.T) { wantErrors(t, c.got, c.want...) })
	}
}
