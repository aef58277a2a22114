package graph

import (
	"encoding/json"
	"reflect"
	"testing"
)

func seed(name string) Vertex   { return Vertex{Kind: KindSeed, Name: name} }
func shoot(name string) Vertex  { return Vertex{Kind: KindShoot, Namespace: "garden-dev", Name: name} }
func secret(name string) Vertex { return Vertex{Kind: KindSecret, Namespace: "garden-dev", Name: name} }
func managedSeed(name string) Vertex {
	return Vertex{Kind: KindManagedSeed, Namespace: "garden", Name: name}
}
func set(g *Graph, owner Vertex, edges ...Edge) { g.Set(owner, edges) }

func wantPath(t *testing.T, g *Graph, from Vertex, to string, want bool) {
	t.Helper()
	if got := g.HasPath(from, to); got != want {
		t.Errorf("HasPath(%s, %s) = %v, want %v", from, to, got, want)
	}
}

func TestVertexLivesWhileAnythingHoldsIt(t *testing.T) {
	g := New()
	binding := Vertex{Kind: KindSecretBinding, Namespace: "garden-dev", Name: "b"}
	set(g, shoot("a"), Edge{binding, shoot("a")}, Edge{shoot("a"), seed("x")})
	set(g, binding, Edge{secret("c"), binding})
	wantPath(t, g, secret("c"), "x", true)

	g.Delete(binding)
	if !g.Has(binding) {
		t.Error("the shoot still refers to the binding")
	}
	if g.Has(secret("c")) {
		t.Error("nothing refers to the secret")
	}
	g.Delete(shoot("a"))
	for _, v := range []Vertex{binding, shoot("a"), seed("x")} {
		if g.Has(v) {
			t.Errorf("nothing holds %s", v)
		}
	}
	g.Delete(shoot("a")) // a repeated event
	g.Delete(shoot("never"))
}

func TestEdgeOfTwoOwnersStaysUntilBothAreGone(t *testing.T) {
	g := New()
	e := Edge{secret("c"), seed("x")}
	set(g, shoot("a"), e)
	set(g, shoot("b"), e)
	g.Delete(shoot("a"))
	wantPath(t, g, secret("c"), "x", true)
	if edges := g.Snapshot().Edges; len(edges) != 1 {
		t.Errorf("edges: %v", edges)
	}
	set(g, shoot("b"))
	wantPath(t, g, secret("c"), "x", false)
}

func TestSeedReachesItself(t *testing.T) {
	g := New()
	wantPath(t, g, seed("x"), "x", false)
	set(g, seed("x"))
	wantPath(t, g, seed("x"), "x", true)
	wantPath(t, g, seed("x"), "y", false)
	g.Delete(seed("x"))
	wantPath(t, g, seed("x"), "x", false)
}

// TestManagedSeed checks the paths over a seed that runs on a shoot of another seed, and their change when the shoot
// moves.
func TestManagedSeed(t *testing.T) {
	g := New()
	profile := Vertex{Kind: KindCloudProfile, Name: "local"}
	set(g, managedSeed("m"), Edge{seed("m"), managedSeed("m")}, Edge{managedSeed("m"), shoot("m")})
	set(g, shoot("m"), Edge{shoot("m"), seed("soil")})
	set(g, shoot("on-m"), Edge{profile, shoot("on-m")}, Edge{shoot("on-m"), seed("m")})
	for _, v := range []Vertex{profile, shoot("on-m"), seed("m"), managedSeed("m"), shoot("m")} {
		wantPath(t, g, v, "soil", true)
		wantPath(t, g, v, "other", false)
	}
	set(g, shoot("m"), Edge{shoot("m"), seed("other")})
	for _, v := range []Vertex{profile, shoot("on-m"), seed("m"), managedSeed("m"), shoot("m")} {
		wantPath(t, g, v, "soil", false)
		wantPath(t, g, v, "other", true)
	}
	wantPath(t, g, profile, "m", true)
	g.Delete(managedSeed("m"))
	wantPath(t, g, profile, "other", false)
	wantPath(t, g, profile, "m", true)
}

func TestCycleKeepsNothingAlive(t *testing.T) {
	g := New()
	// Two shoots that lead to each other, and from one of them to a seed.
	set(g, shoot("a"), Edge{shoot("a"), shoot("b")}, Edge{secret("c"), shoot("a")})
	set(g, shoot("b"), Edge{shoot("b"), shoot("a")}, Edge{shoot("b"), seed("x")})
	for _, v := range []Vertex{shoot("a"), shoot("b"), secret("c")} {
		wantPath(t, g, v, "x", true)
		if path := g.Path(v, "x"); path == nil {
			t.Errorf("no path from %s", v)
		}
	}
	set(g, seed("x"))
	set(g, shoot("b"), Edge{shoot("b"), shoot("a")})
	for _, v := range []Vertex{shoot("a"), shoot("b"), secret("c")} {
		wantPath(t, g, v, "x", false)
	}
	// Seeds that manage each other.
	set(g, managedSeed("p"), Edge{seed("p"), managedSeed("p")}, Edge{managedSeed("p"), seed("q")})
	set(g, managedSeed("q"), Edge{seed("q"), managedSeed("q")}, Edge{managedSeed("q"), seed("p")}, Edge{managedSeed("q"), seed("r")})
	wantPath(t, g, seed("p"), "r", true)
	wantPath(t, g, seed("q"), "p", true)
	set(g, managedSeed("q"), Edge{seed("q"), managedSeed("q")}, Edge{managedSeed("q"), seed("p")})
	set(g, seed("r"))
	wantPath(t, g, seed("p"), "r", false)
	wantPath(t, g, seed("p"), "p", true)
}

func TestPathIsExplained(t *testing.T) {
	g := New()
	project, namespace := Vertex{Kind: KindProject, Name: "dev"}, Vertex{Kind: KindNamespace, Name: "garden-dev"}
	set(g, project, Edge{project, namespace})
	set(g, shoot("a"), Edge{namespace, shoot("a")}, Edge{shoot("a"), seed("x")})
	set(g, shoot("b"), Edge{namespace, shoot("b")}, Edge{shoot("b"), seed("y")})
	want := []Vertex{project, namespace, shoot("a"), seed("x")}
	if got := g.Path(project, "x"); !reflect.DeepEqual(got, want) {
		t.Errorf("Path = %v, want %v", got, want)
	}
	if got := g.Path(shoot("a"), "y"); got != nil {
		t.Errorf("Path = %v, want none", got)
	}
}

func TestSnapshotAsJSON(t *testing.T) {
	g := New()
	set(g, shoot("a"), Edge{shoot("a"), seed("x")})
	data, err := json.Marshal(g.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"vertices":[{"kind":"Seed","name":"x","exists":false},{"kind":"Shoot","namespace":"garden-dev","name":"a","exists":true}],` +
		`"edges":[{"from":{"kind":"Shoot","namespace":"garden-dev","name":"a"},"to":{"kind":"Seed","name":"x"}}]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	var back Snapshot
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, g.Snapshot()) {
		t.Errorf("read back as %v, %v", back, err)
	}
}

func TestKinds(t *testing.T) {
	for _, kind := range Kinds() {
		if back, ok := ParseKind(kind.String()); !ok || back != kind || kind.String() == "" {
			t.Errorf("%s is read back as %s", kind, back)
		}
	}
	if _, ok := ParseKind(""); ok {
		t.Error("the empty name is a kind")
	}
	for v, want := range map[Vertex]string{shoot("a"): "Shoot garden-dev/a", seed("x"): "Seed x"} {
		if v.String() != want {
			t.Errorf("%q, want %q", v, want)
		}
	}
}

func TestPathCheckDoesNotAllocate(t *testing.T) {
	u := landscape(100, 200)
	g, hot := New(), Vertex{Kind: KindCloudProfile, Name: "hot"}
	for i, v := range u.vertices {
		if v.Kind == KindShoot {
			set(g, v, Edge{hot, v}, Edge{v, u.seeds[i%len(u.seeds)]})
		}
	}
	if got := testing.AllocsPerRun(100, func() {
		g.HasPath(hot, "s7")
		g.HasPath(hot, "nowhere")
		g.HasPath(u.vertices[len(u.vertices)-2], "s3")
		g.Has(hot)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
