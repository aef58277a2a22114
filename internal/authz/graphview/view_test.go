package graphview

import (
	"slices"
	"testing"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
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

func TestSelector(t *testing.T) {
	vertex := func(kind graph.Kind, namespace, name string) graph.SnapshotVertex {
		return graph.SnapshotVertex{Vertex: graph.Vertex{Kind: kind, Namespace: namespace, Name: name}}
	}
	all := []graph.SnapshotVertex{
		vertex(graph.KindSeed, "", "a"), vertex(graph.KindShoot, "garden-x", "a"), vertex(graph.KindShoot, "garden-y", "a"),
		vertex(graph.KindShoot, "garden-y", "b"),
	}
	for _, test := range []struct {
		filter selector
		want   []graph.SnapshotVertex
	}{
		{selector{}, all},
		{selector{Kind: graph.KindShoot}, all[1:]},
		{selector{Name: "a"}, all[:3]},
		{selector{Namespace: "garden-*", Name: "a"}, all[1:3]},
		{selector{Kind: graph.KindShoot, Namespace: "*y", Name: "b"}, all[3:]},
		{selector{Kind: graph.KindSeed, Name: "b"}, nil},
	} {
		if got := test.filter.selectFrom(all); !slices.Equal(got, test.want) {
			t.Errorf("%v selects %v, want %v", test.filter, got, test.want)
		}
	}
}
