package authorizer

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// paths has a request for each way to be allowed, and some that are not allowed.
var paths = []struct {
	about   string
	attrs   authorizer.Attributes
	allowed bool
}{
	{"free", request(gardenletA, "list", "controllerregistrations.core.gardener.cloud", ""), true},
	{"of-seed", ofSeedA(request(gardenletA, "list", "shoots.core.gardener.cloud", "")), true},
	{"graph", request(gardenletA, "get", "secrets", "garden-a/own"), true},
	{"graph-extension", request(extensionA, "get", "secrets", "garden-a/own"), true},
	{"selector", withName(request(gardenletA, "list", "configmaps", "garden-a/"), "own"), true},
	{"absent", request(gardenletA, "delete", "secrets", "garden-b/absent"), false},
	{"seed-namespace", request(gardenletA, "list", "secrets", "seed-a/"), true},
	{"bootstrap-token", request(gardenletA, "delete", "secrets", "kube-system/bootstrap-token-4c40cb"), true},
	{"subresource", request(gardenletA, "patch", "shoots.core.gardener.cloud/status", "garden-a/own"), true},
	{"no-path", request(gardenletA, "get", "secrets", "garden-b/foreign"), false},
}

func withName(attrs authorizer.AttributesRecord, name string) authorizer.AttributesRecord {
	attrs.FieldSelectorRequirements = fields.Requirements{equals("metadata.name", name)}
	return attrs
}

func ofSeedA(attrs authorizer.AttributesRecord) authorizer.AttributesRecord {
	attrs.LabelSelectorRequirements, _ = labels.ParseToRequirements("name.seed.gardener.cloud/a=true")
	return attrs
}

// benchLandscape contains the bootstrap token, so that the ID of the token has to be computed.
func benchLandscape() fakeGraph {
	g := landscape()
	g[graph.Vertex{Kind: graph.KindSecret, Namespace: "kube-system", Name: "bootstrap-token-4c40cb"}] = []string{"b"}
	return g
}

func BenchmarkAuthorize(b *testing.B) {
	a := New(benchLandscape(), ReadsSeed)
	for _, path := range paths {
		b.Run(path.about, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if decision, _, _ := a.Authorize(b.Context(), path.attrs); (decision == authorizer.DecisionAllow) != path.allowed {
					b.Fatal(decision)
				}
			}
		})
	}
}

func TestAllowingDoesNotAllocate(t *testing.T) {
	a := New(benchLandscape(), ReadsSeed)
	ctx := t.Context()
	for _, path := range paths {
		if !path.allowed {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { _, _, _ = a.Authorize(ctx, path.attrs) }); n != 0 {
			t.Errorf("%s: %v allocations", path.about, n)
		}
	}
}
