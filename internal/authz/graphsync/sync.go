package graphsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// Config is the configuration of a Syncer.
type Config struct {
	// REST is the client configuration for the garden. The user must be allowed to list and watch all Resources.
	REST *rest.Config
	// Graph is the graph. No other Syncer may write to it.
	Graph *graph.Graph
	// Clock is the clock by which client certificates expire; the wall clock if nil.
	Clock clock.Clock
	Log   logr.Logger
	// ObserveUpdate, if set, is called with the duration of each update of the graph (operation: Set or Delete).
	ObserveUpdate func(kind graph.Kind, operation string, took time.Duration)
	// ListerWatcher, if set, replaces lists and watches over REST.
	ListerWatcher func(Resource) cache.ListerWatcher
}

// Syncer keeps a graph in sync with a garden.
type Syncer struct {
	config Config
	stores []*store
	expiry *expiry

	// mu serializes the writes to the graph, and guards the retained objects.
	mu    sync.Mutex
	kinds map[graph.Kind]*store
}

// New returns a Syncer; Run starts it.
func New(config Config) (*Syncer, error) {
	if config.Graph == nil {
		return nil, errors.New("no graph to feed")
	}
	config.Clock = cmp.Or[clock.Clock](config.Clock, clock.RealClock{})
	if config.ObserveUpdate == nil {
		config.ObserveUpdate = func(graph.Kind, string, time.Duration) {}
	}
	resources := Resources()
	var watchers []cache.ListerWatcher
	if config.ListerWatcher != nil {
		for _, resource := range resources {
			watchers = append(watchers, config.ListerWatcher(resource))
		}
	} else {
		if config.REST == nil {
			return nil, errors.New("no garden to read from: neither REST nor ListerWatcher is set")
		}
		var err error
		if watchers, err = listerWatchers(config.REST, resources); err != nil {
			return nil, err
		}
	}
	s := &Syncer{config: config, kinds: map[graph.Kind]*store{}}
	s.expiry = newExpiry(config.Clock)
	for i, resource := range resources {
		st := &store{syncer: s, resource: resource, watcher: watchers[i], objects: map[graph.Vertex]any{}}
		s.stores = append(s.stores, st)
		s.kinds[resource.Kind] = st
	}
	return s, nil
}

// Run updates the graph until the context ends, and returns when all goroutines have ended.
func (s *Syncer) Run(ctx context.Context) error {
	var group wait.Group
	for _, st := range s.stores {
		group.StartWithContext(ctx, st.run)
	}
	group.StartWithContext(ctx, func(ctx context.Context) { s.expiry.run(ctx, s.seedExpired) })
	group.Wait()
	return nil
}

// HasSynced reports whether the first list of every kind is in the graph.
func (s *Syncer) HasSynced() bool {
	return !slices.ContainsFunc(s.stores, func(st *store) bool { return !st.synced.Load() })
}

// Current reports whether HasSynced is true and the graph is not stale: no kind has been without a watch for too long.
func (s *Syncer) Current() bool { return s.Missing() == "" }

// Missing returns the resources for which Current is false, for messages; "" if there are none.
func (s *Syncer) Missing() string {
	var missing []string
	for _, st := range s.stores {
		switch stale := st.stale(); {
		case !st.synced.Load():
			missing = append(missing, st.resource.GroupResource().String())
		case stale > 0:
			missing = append(missing, fmt.Sprintf("%s (no watch for %s)", st.resource.GroupResource(), stale.Truncate(time.Second)))
		}
	}
	return strings.Join(missing, ", ")
}

// Seen reports whether the graph contains this version of an object of the kind, or a later one of another object. It
// returns true if the version cannot be compared.
func (s *Syncer) Seen(kind graph.Kind, resourceVersion string) bool {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	st := s.kinds[kind]
	return err != nil || st == nil || st.version.Load() >= version
}

// Seeds returns the names of all Seeds, in no particular order.
func (s *Syncer) Seeds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects := s.kinds[graph.KindSeed].objects
	names := make([]string, 0, len(objects))
	for seed := range objects {
		names = append(names, seed.Name)
	}
	return names
}

// set writes the edges of an object, and of the objects that depend on it. The caller holds s.mu.
func (s *Syncer) set(obj any) (graph.Vertex, error) {
	owner, err := s.setOne(obj)
	if err != nil {
		return owner, err
	}
	if seed, ok := obj.(*gardencorev1beta1.Seed); ok {
		s.expiry.watch(seed)
	}
	return owner, s.remakeDependents(obj)
}

func (s *Syncer) setOne(obj any) (graph.Vertex, error) {
	start := time.Now()
	owner, edges, ok := graph.EdgesOf(obj, objects{s})
	if !ok {
		return owner, fmt.Errorf("the graph knows no edges of a %T", obj)
	}
	s.config.Graph.Set(owner, edges)
	s.config.ObserveUpdate(owner.Kind, "Set", time.Since(start))
	return owner, nil
}

// remove removes an object and its edges from the graph. The caller holds s.mu, and has removed the object from the
// store.
func (s *Syncer) remove(owner graph.Vertex, obj any) error {
	start := time.Now()
	s.config.Graph.Delete(owner)
	s.config.ObserveUpdate(owner.Kind, "Delete", time.Since(start))
	if owner.Kind == graph.KindSeed {
		s.expiry.forget(owner.Name)
	}
	return s.remakeDependents(obj)
}

// remakeDependents updates the edges that depend on an object that was changed or deleted. The caller holds s.mu.
func (s *Syncer) remakeDependents(obj any) error {
	if obj == nil {
		return nil
	}
	var errs []error
	for _, dependent := range graph.Dependents(obj) {
		st := s.kinds[dependent.Kind]
		if st == nil || !st.resource.retained {
			errs = append(errs, fmt.Errorf("edges of %s depend on another object, but objects of this kind are not retained", dependent))
			continue
		}
		if retained, ok := st.objects[dependent]; ok {
			_, err := s.setOne(retained)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// seedExpired updates the edges that depend on a seed whose client certificate has expired.
func (s *Syncer) seedExpired(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seed := (objects{s}).Seed(name); seed != nil {
		if err := s.remakeDependents(seed); err != nil {
			s.config.Log.Error(err, "The graph is incomplete after a seed's client certificate expired", "seed", name)
		}
	}
}

// objects implements graph.Objects with the retained objects. The caller holds s.mu.
type objects struct{ s *Syncer }

var _ graph.Objects = objects{}

func (o objects) Seed(name string) *gardencorev1beta1.Seed {
	seed, _ := o.s.kinds[graph.KindSeed].objects[graph.Vertex{Kind: graph.KindSeed, Name: name}].(*gardencorev1beta1.Seed)
	return seed
}

func (o objects) Now() time.Time { return o.s.config.Clock.Now() }
