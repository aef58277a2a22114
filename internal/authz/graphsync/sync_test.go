package graphsync

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// garden is a garden for a test: one source of objects for each kind, and a graph that is synced from them.
type garden struct {
	*testing.T
	sources map[string]*cachetesting.FakeControllerSource
	graph   *graph.Graph
	clock   *testingclock.FakeClock
	syncer  *Syncer

	mu      sync.Mutex
	updates map[string]int
}

func newGarden(t *testing.T) *garden {
	t.Helper()
	g := &garden{
		T: t, sources: map[string]*cachetesting.FakeControllerSource{}, graph: graph.New(),
		clock: testingclock.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), updates: map[string]int{},
	}
	for _, resource := range Resources() {
		g.sources[resource.Resource] = cachetesting.NewFakeControllerSource()
	}
	var err error
	g.syncer, err = New(Config{
		Graph: g.graph, Clock: g.clock,
		ListerWatcher: func(r Resource) cache.ListerWatcher { return g.sources[r.Resource] },
		ObserveUpdate: func(kind graph.Kind, operation string, _ time.Duration) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.updates[kind.String()+" "+operation]++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// start runs the syncer until the end of the test.
func (g *garden) start() {
	g.Helper()
	ctx, cancel := context.WithCancel(g.Context())
	done := make(chan error, 1)
	go func() { done <- g.syncer.Run(ctx) }()
	g.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			g.Errorf("Run: %v", err)
		}
	})
}

func (g *garden) synced() *garden {
	g.Helper()
	g.start()
	testutil.EventuallyTrue(g, "the graph syncs", g.syncer.HasSynced)
	return g
}

// path waits until there is a path, or none.
func (g *garden) path(from graph.Vertex, seed string, want bool) {
	g.Helper()
	testutil.EventuallyTrue(g, fmt.Sprintf("a path from %s to Seed %s: %v", from, seed, want),
		func() bool { return g.graph.HasPath(from, seed) == want })
}

func seedObject(name string, expires *time.Time) *gardencorev1beta1.Seed {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if expires != nil {
		seed.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: *expires}
	}
	return seed
}

func shootObject(name, seed string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: ptr.To(seed), CloudProfileName: ptr.To("local")},
	}
}

func managedSeedObject(name, shoot string) *seedmanagementv1alpha1.ManagedSeed {
	return &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: shoot},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Bootstrap: ptr.To(seedmanagementv1alpha1.BootstrapServiceAccount)},
		},
	}
}

var (
	cloudProfile     = graph.Vertex{Kind: graph.KindCloudProfile, Name: "local"}
	bootstrapAccount = graph.Vertex{Kind: graph.KindServiceAccount, Namespace: "garden", Name: "gardenlet-bootstrap-child"}
)

func TestHasSyncedWaitsForEveryKind(t *testing.T) {
	var mu sync.Mutex
	held := map[string]chan struct{}{}
	g := newGarden(t)
	var err error
	g.syncer, err = New(Config{Graph: g.graph, Clock: g.clock, ListerWatcher: func(r Resource) cache.ListerWatcher {
		gate := make(chan struct{})
		held[r.Resource] = gate
		return &gated{ListerWatcher: g.sources[r.Resource], gate: gate}
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.sources["shoots"].Add(shootObject("a", "x"))
	g.start()
	for i, resource := range Resources() {
		if g.syncer.HasSynced() {
			t.Fatalf("synced although %s is not listed", resource.Resource)
		}
		if missing := g.syncer.Missing(); strings.Count(missing, ",") != len(Resources())-1-i || !strings.Contains(missing, resource.Resource) {
			t.Errorf("missing: %s", missing)
		}
		mu.Lock()
		close(held[resource.Resource])
		mu.Unlock()
		testutil.EventuallyTrue(g, resource.Resource+" is listed",
			func() bool { return !strings.Contains(g.syncer.Missing(), resource.GroupResource().String()) })
	}
	if !g.syncer.HasSynced() || g.syncer.Missing() != "" {
		t.Errorf("all is listed, but missing: %q", g.syncer.Missing())
	}
	if !g.graph.HasPath(cloudProfile, "x") {
		t.Error("synced, but the shoot of the first list is not in the graph")
	}
}

// gated blocks lists until the gate is closed.
type gated struct {
	cache.ListerWatcher
	gate chan struct{}
}

func (g *gated) IsWatchListSemanticsUnSupported() bool { return true }

func (g *gated) List(options metav1.ListOptions) (runtime.Object, error) {
	<-g.gate
	return g.ListerWatcher.List(options)
}

func (g *gated) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return g.ListerWatcher.Watch(options)
}

func TestEventsReachTheGraph(t *testing.T) {
	g := newGarden(t)
	g.sources["shoots"].Add(shootObject("a", "x"))
	g.synced()
	g.path(cloudProfile, "x", true)

	g.sources["shoots"].Modify(shootObject("a", "y"))
	g.path(cloudProfile, "y", true)
	g.path(cloudProfile, "x", false)

	g.sources["shoots"].Add(shootObject("b", "x"))
	g.path(cloudProfile, "x", true)

	g.sources["shoots"].Delete(shootObject("b", "x"))
	g.path(cloudProfile, "x", false)
	g.sources["shoots"].Delete(shootObject("a", "y"))
	testutil.EventuallyTrue(g, "nothing is left", func() bool { return len(g.graph.Snapshot().Vertices) == 0 })
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.updates["Shoot Set"] != 3 || g.updates["Shoot Delete"] != 2 {
		t.Errorf("observed updates: %v", g.updates)
	}
}

// TestBootstrappedDependsOnTheSeed checks that the edges of a ManagedSeed follow the Seed of the same name, and the
// time.
func TestBootstrappedDependsOnTheSeed(t *testing.T) {
	g := newGarden(t)
	g.sources["shoots"].Add(shootObject("child", "parent"))
	g.sources["managedseeds"].Add(managedSeedObject("child", "child"))
	g.synced()
	g.path(bootstrapAccount, "parent", true) // no seed yet

	expires := g.clock.Now().Add(48 * time.Hour)
	g.sources["seeds"].Add(seedObject("child", &expires))
	g.path(bootstrapAccount, "parent", false) // bootstrapped

	g.wakes()
	g.clock.Step(47 * time.Hour)
	g.wakes()
	if g.graph.HasPath(bootstrapAccount, "parent") {
		t.Error("the certificate has not expired yet")
	}
	g.clock.Step(time.Hour + 2*time.Second)
	g.path(bootstrapAccount, "parent", true) // expired

	expires = g.clock.Now().Add(24 * time.Hour)
	g.sources["seeds"].Modify(seedObject("child", &expires))
	g.path(bootstrapAccount, "parent", false) // renewed

	g.sources["seeds"].Delete(seedObject("child", &expires))
	g.path(bootstrapAccount, "parent", true) // gone

	g.sources["managedseeds"].Delete(managedSeedObject("child", "child"))
	g.path(bootstrapAccount, "parent", false)
}

// wakes waits until the syncer waits for the next expiration.
func (g *garden) wakes() {
	g.Helper()
	testutil.EventuallyTrue(g, "the syncer waits for time to pass", g.clock.HasWaiters)
}

// TestRelist checks that the next list removes objects that were deleted without an event.
func TestRelist(t *testing.T) {
	g := newGarden(t)
	st := g.syncer.kinds[graph.KindShoot]
	list := func(objects ...any) {
		t.Helper()
		if err := st.Replace(objects, "1"); err != nil {
			t.Fatal(err)
		}
	}
	list(shootObject("a", "x"), shootObject("b", "y"))
	list(shootObject("b", "z"), shootObject("c", "y"))
	for seed, want := range map[string]bool{"x": false, "y": true, "z": true} {
		g.path(cloudProfile, seed, want)
	}
	if g.graph.Has(graph.Vertex{Kind: graph.KindShoot, Namespace: "garden", Name: "a"}) {
		t.Error("shoot a is still there")
	}
	seeds := g.syncer.kinds[graph.KindSeed]
	managed := g.syncer.kinds[graph.KindManagedSeed]
	list(shootObject("child", "parent"))
	_ = managed.Replace([]any{managedSeedObject("child", "child")}, "1")
	_ = seeds.Replace([]any{seedObject("child", nil)}, "1")
	g.path(bootstrapAccount, "parent", false)
	_ = seeds.Replace(nil, "2")
	g.path(bootstrapAccount, "parent", true)
}

// TestAnyOrderOfKinds checks that the graph does not depend on the order of the events of different kinds.
func TestAnyOrderOfKinds(t *testing.T) {
	expires := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	objects := map[graph.Kind][]any{
		graph.KindSeed:        {seedObject("child", &expires), seedObject("parent", nil)},
		graph.KindManagedSeed: {managedSeedObject("child", "child"), managedSeedObject("other", "child")},
		graph.KindShoot:       {shootObject("child", "parent"), shootObject("a", "child")},
	}
	var want string
	first := testutil.Seed(t)
	for seed := first; seed < first+20; seed++ {
		g := newGarden(t)
		random := rand.New(rand.NewPCG(seed, 1))
		var events []func() error
		for _, kind := range slices.Sorted(maps.Keys(objects)) {
			st, all := g.syncer.kinds[kind], objects[kind]
			for _, obj := range all {
				events = append(events, func() error { return st.Add(obj) }, func() error { return st.Update(obj) })
			}
			events = append(events, func() error { return st.Replace(slices.Clone(all), "") })
		}
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for _, event := range events {
			if err := event(); err != nil {
				t.Fatal(err)
			}
		}
		got := fmt.Sprint(g.graph.Snapshot())
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("order %d makes\n%s, not\n%s", seed, got, want)
		}
	}
}

// TestResourcesFit checks that every watched kind has edges in the graph, under the vertex with which they are deleted,
// and that objects whose edges depend on others are retained.
func TestResourcesFit(t *testing.T) {
	g := newGarden(t)
	for _, resource := range Resources() {
		object := resource.Object.DeepCopyObject()
		object.(metav1.Object).SetName("x")
		if resource.Kind == graph.KindShoot || resource.Kind == graph.KindServiceAccount {
			object.(metav1.Object).SetNamespace("ns")
		}
		st := g.syncer.kinds[resource.Kind]
		owner, _, ok := graph.EdgesOf(object, objects{g.syncer})
		if wanted, err := st.ownerOf(object); !ok || err != nil || owner != wanted {
			t.Errorf("%s: EdgesOf says %v %s, want %s", resource.Resource, ok, owner, wanted)
		}
		for _, dependent := range graph.Dependents(object) {
			if other := g.syncer.kinds[dependent.Kind]; other == nil || !other.resource.retained {
				t.Errorf("%s depends on %s, but is not retained", dependent.Kind, resource.Kind)
			}
		}
		if err := st.Add(object); err != nil {
			t.Error(err)
		}
		if err := st.Delete(object); err != nil {
			t.Error(err)
		}
	}
	if left := g.graph.Snapshot(); len(left.Vertices) != 0 {
		t.Errorf("left over: %v", left)
	}
	if err := g.syncer.kinds[graph.KindShoot].Add("not an object"); err == nil {
		t.Error("took something that is no object")
	}
}

func TestStripKeepsTheEdges(t *testing.T) {
	shoot := shootObject("a", "x")
	shoot.Annotations = map[string]string{"authentication.gardener.cloud/issuer": "managed"}
	shoot.Status = gardencorev1beta1.ShootStatus{SeedName: ptr.To("y"), TechnicalID: "shoot--dev--a",
		Conditions: make([]gardencorev1beta1.Condition, 3)}
	shoot.Spec.Provider.Workers = make([]gardencorev1beta1.Worker, 3)
	shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "r"}}
	_, want, _ := graph.EdgesOf(shoot.DeepCopy(), nil)
	if _, err := strip(shoot); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := graph.EdgesOf(shoot, nil); fmt.Sprint(got) != fmt.Sprint(want) || len(got) < 10 {
		t.Errorf("stripped: %v\nwhole: %v", got, want)
	}
	if shoot.ManagedFields != nil || shoot.Status.Conditions != nil || shoot.Spec.Provider.Workers != nil {
		t.Error("nothing is stripped")
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no graph")
	}
	if _, err := New(Config{Graph: graph.New()}); err == nil {
		t.Error("no garden")
	}
}

func BenchmarkUpdate(b *testing.B) {
	s, err := New(Config{Graph: graph.New(), ListerWatcher: func(Resource) cache.ListerWatcher { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	shoots := []*gardencorev1beta1.Shoot{shootObject("a", "x"), shootObject("a", "y")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.kinds[graph.KindShoot].Update(shoots[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}
