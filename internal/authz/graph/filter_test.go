package graph

import (
	"slices"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*b", "ab", true}, {"a*b", "ab", true}, {"a*b", "axxb", true},
		{"a*a", "a", false}, {"*", "", true}, {"a*b*c", "abxbc", true}, {"a*b*c", "acb", false}, {"**", "x", true}, {"[a]", "a", false},
		{"", "a", true}, {"*b*", "abc", true}, {"*b*", "ac", false},
	} {
		if got := globMatches(test.pattern, test.text); got != test.want {
			t.Errorf("globMatches(%q, %q) = %v", test.pattern, test.text, got)
		}
	}
}

func TestFilter(t *testing.T) {
	vertex := func(kind Kind, namespace, name string) SnapshotVertex {
		return SnapshotVertex{Vertex: Vertex{Kind: kind, Namespace: namespace, Name: name}}
	}
	all := []SnapshotVertex{
		vertex(KindSeed, "", "a"), vertex(KindShoot, "garden-x", "a"), vertex(KindShoot, "garden-y", "a"), vertex(KindShoot, "garden-y", "b"),
	}
	for _, test := range []struct {
		filter Filter
		want   []SnapshotVertex
	}{
		{Filter{}, all},
		{Filter{Kind: KindShoot}, all[1:]},
		{Filter{Name: "a"}, all[:3]},
		{Filter{Namespace: "garden-*", Name: "a"}, all[1:3]},
		{Filter{Kind: KindShoot, Namespace: "*y", Name: "b"}, all[3:]},
		{Filter{Kind: KindSeed, Name: "b"}, nil},
	} {
		if got := test.filter.Select(all); !slices.Equal(got, test.want) {
			t.Errorf("%v selects %v, want %v", test.filter, got, test.want)
		}
	}
}
