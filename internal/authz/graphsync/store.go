package graphsync

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// store is the store of the reflector of one kind. It writes to the graph, and records which objects exist, so that a
// new list removes those that were deleted without an event.
type store struct {
	syncer   *Syncer
	resource Resource
	watcher  cache.ListerWatcher
	synced   atomic.Bool
	// lost is the time since when there has been no watch, nil while there is one.
	lost atomic.Pointer[time.Time]

	// version is the highest resource version of an object of the kind that is in the graph.
	version atomic.Uint64
	// objects has every object of the kind. The values are set only if the kind is retained. Guarded by syncer.mu.
	objects map[graph.Vertex]any
}

var _ cache.TransformingStore = &store{}

// run lists and watches until the context ends. After an outage of the garden, it lists again within seconds.
func (st *store) run(ctx context.Context) {
	logger := st.syncer.config.Log
	reflector := cache.NewReflectorWithOptions(st.followed(st.watcher), st.resource.Object, st, cache.ReflectorOptions{
		Logger: &logger,
		Name:   "seed-authorizer/" + st.resource.Resource,
		Backoff: &wait.Backoff{
			Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 3 * time.Second,
		},
	})
	reflector.RunWithContext(ctx)
}

func (st *store) Add(obj any) error { return st.Update(obj) }

func (st *store) Update(obj any) error {
	st.syncer.mu.Lock()
	defer st.syncer.mu.Unlock()
	err := st.put(obj)
	st.saw(versionOf(obj))
	return err
}

func (st *store) put(obj any) error {
	owner, err := st.ownerOf(obj)
	if err != nil {
		return err
	}
	if st.resource.retained {
		st.objects[owner] = obj
	} else {
		st.objects[owner] = nil
	}
	got, err := st.syncer.set(obj)
	if err == nil && got != owner {
		// Edges that are set under one name could not be deleted under another.
		st.syncer.config.Graph.Delete(got)
		err = fmt.Errorf("edges of %s are owned by %s", owner, got)
	}
	return err
}

// saw records the version of an object. The events of a watch are ordered by version.
func (st *store) saw(version uint64) {
	if version > st.version.Load() {
		st.version.Store(version)
	}
}

// versionOf returns the resource version of an object, and 0 if it has none.
func versionOf(obj any) uint64 {
	object, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return version
}

func (st *store) Delete(obj any) error {
	owner, err := st.ownerOf(obj)
	if err != nil {
		return err
	}
	st.syncer.mu.Lock()
	defer st.syncer.mu.Unlock()
	return st.drop(owner, obj)
}

func (st *store) drop(owner graph.Vertex, obj any) error {
	delete(st.objects, owner)
	st.saw(versionOf(obj))
	return st.syncer.remove(owner, obj)
}

// Replace makes the graph contain the objects of a complete list, and no others of the kind. It locks for each object,
// not for the whole list, so that other kinds make progress meanwhile. Deleted objects are removed first: a relist
// follows a time without events, and outdated paths must be closed as soon as possible.
func (st *store) Replace(list []any, _ string) error {
	var errs []error
	present := make(map[graph.Vertex]struct{}, len(list))
	for _, obj := range list {
		owner, err := st.ownerOf(obj)
		errs = append(errs, err)
		present[owner] = struct{}{}
	}
	errs = append(errs, st.dropOthers(present))
	var highest uint64 // the objects of a list are not ordered by version: it counts only when all are in the graph
	for i, obj := range list {
		st.syncer.mu.Lock()
		errs = append(errs, st.put(obj))
		st.syncer.mu.Unlock()
		highest = max(highest, versionOf(obj))
		list[i] = nil // the memory of a large list can be freed while it is stored
	}
	st.saw(highest)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("putting the %s into the graph: %w", st.resource.Resource, err)
	}
	st.synced.Store(true)
	st.found()
	return nil
}

func (st *store) dropOthers(present map[graph.Vertex]struct{}) error {
	st.syncer.mu.Lock()
	defer st.syncer.mu.Unlock()
	var errs []error
	for owner, obj := range st.objects {
		if _, ok := present[owner]; !ok {
			errs = append(errs, st.drop(owner, obj))
		}
	}
	return errors.Join(errs...)
}

// Resync does nothing: the graph keeps everything.
func (st *store) Resync() error { return nil }

// Transformer returns strip, which is applied while the first list is still being received.
func (st *store) Transformer() cache.TransformFunc { return strip }

func (st *store) ownerOf(obj any) (graph.Vertex, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return graph.Vertex{}, fmt.Errorf("reading the %s: %w", st.resource.Resource, err)
	}
	return graph.Vertex{Kind: st.resource.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}, nil
}
