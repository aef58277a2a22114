package authorizer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/admissioncontroller/webhook/auth/seed"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/graph"
	"github.com/go-logr/logr"
	gonumgraph "gonum.org/v1/gonum/graph"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// withSelectors says that the API server sends selectors, as each that Gardener v1.150 supports does.
type withSelectors struct{}

func (withSelectors) IsPossible() (bool, error) { return true, nil }

// newGardener returns Gardener's SeedAuthorizer with a graph of the world, as gardener-admission-controller makes it. The world gets
// the names in the graph.
func newGardener(t *testing.T, w *world) authorizer.Authorizer {
	t.Helper()
	log.SetLogger(logr.Discard())
	objects, err := cache.New(w.config, cache.Options{Scheme: kubernetes.GardenScheme})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := objects.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	reader, err := client.New(w.config, client.Options{Scheme: kubernetes.GardenScheme, Cache: &client.CacheOptions{Reader: objects}})
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New(logr.Discard(), reader, false)
	handlers := &tracked{Cache: objects}
	if err := g.Setup(t.Context(), handlers); err != nil {
		t.Fatal(err)
	}
	if !toolscache.WaitForCacheSync(t.Context().Done(), handlers.synced...) {
		t.Fatal("Gardener's graph has not synced")
	}
	g.Visit(g.Nodes(), func(node gonumgraph.Node) {
		v := node.(*graph.Vertex)
		r := resources[slices.IndexFunc(resources, func(r resource) bool { return r.kind == graph.VertexTypes[v.Type].Kind })]
		if k := (key{v.Namespace, v.Name}); !slices.Contains(w.names[r.groupResource()], k) {
			w.names[r.groupResource()] = append(w.names[r.groupResource()], k)
		}
	})
	for _, keys := range w.names { // the graph has no order
		slices.SortFunc(keys, func(a, b key) int {
			return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
		})
	}
	return seed.NewAuthorizer(logr.Discard(), g, withSelectors{})
}

// tracked is a cache that knows when those who watch it have had all objects.
type tracked struct {
	cache.Cache
	synced []toolscache.InformerSynced
}

func (t *tracked) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := t.Cache.GetInformer(ctx, obj, opts...)
	return &trackedInformer{informer, t}, err
}

type trackedInformer struct {
	cache.Informer
	of *tracked
}

func (i *trackedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandler(handler)
	if err == nil {
		i.of.synced = append(i.of.synced, registration.HasSynced)
	}
	return registration, err
}
