package authorizer

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

var _ Graph = graph.New()

// TestRealGraph follows a secret in a real graph: bound by a Shoot of seed b, then of seed a, then by none.
func TestRealGraph(t *testing.T) {
	var (
		secret  = graph.Vertex{Kind: graph.KindSecret, Namespace: "garden-dev", Name: "credentials"}
		binding = graph.Vertex{Kind: graph.KindSecretBinding, Namespace: "garden-dev", Name: "binding"}
		shoot   = graph.Vertex{Kind: graph.KindShoot, Namespace: "garden-dev", Name: "shoot"}
		seedA   = graph.Vertex{Kind: graph.KindSeed, Name: "a"}
		seedB   = graph.Vertex{Kind: graph.KindSeed, Name: "b"}
	)
	g := graph.New()
	a := New(g, ReadsSeed)
	get := request(gardenletA, "get", "secrets", "garden-dev/credentials")
	remove := request(gardenletA, "delete", "secrets", "garden-dev/credentials")
	check := func(about string, want, wantDelete bool) {
		t.Helper()
		if got, reason := allowed(t, a, get); got != want {
			t.Errorf("%s: get allowed %v (%s)", about, got, reason)
		}
		if got, reason := allowed(t, a, remove); got != wantDelete {
			t.Errorf("%s: delete allowed %v (%s)", about, got, reason)
		}
	}
	onSeed := func(seed graph.Vertex) []graph.Edge {
		return []graph.Edge{{From: binding, To: shoot}, {From: shoot, To: seed}}
	}

	check("empty", false, false)
	g.Set(seedA, nil)
	g.Set(seedB, nil)
	g.Set(binding, []graph.Edge{{From: secret, To: binding}})
	check("bound", false, false)
	g.Set(shoot, onSeed(seedB))
	check("on seed b", false, false)
	explained := a.Explain(get)
	if want := []graph.Vertex{secret, binding, shoot, seedB}; !slices.Equal(explained.Path, want) || explained.Allowed {
		t.Errorf("on seed b: %+v", explained)
	}
	g.Set(shoot, onSeed(seedA))
	check("on seed a", true, true)
	explained = a.Explain(get)
	if want := []graph.Vertex{secret, binding, shoot, seedA}; !slices.Equal(explained.Path, want) || !explained.Allowed {
		t.Errorf("on seed a: %+v", explained)
	}
	ctx, attrs := t.Context(), authorizer.Attributes(get)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = a.Authorize(ctx, attrs) }); n != 0 {
		t.Errorf("%v allocations with the graph itself", n)
	}
	g.Delete(shoot)
	check("no shoot", false, false)
	g.Delete(binding)
	check("no binding", false, false)

	own := request(gardenletA, "update", "seeds.core.gardener.cloud", "a")
	if got, reason := allowed(t, a, own); !got {
		t.Errorf("own Seed: %s", reason)
	}
}
