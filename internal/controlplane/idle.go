package controlplane

import (
	"context"
	"path"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// occupancy records which resources have objects.
type occupancy struct {
	mu        sync.Mutex
	resources map[schema.GroupResource]*use
}

// use is the state of a resource.
type use struct {
	prefix string
	// used is true once an object has been created or found; then wakes is empty.
	used  bool
	wakes []*func()
}

// of returns the state of a resource whose objects are stored below the prefix.
func (u *occupancy) of(resource schema.GroupResource, prefix string) *use {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.resources == nil {
		u.resources = map[schema.GroupResource]*use{}
	}
	if u.resources[resource] == nil {
		u.resources[resource] = &use{prefix: prefix}
	}
	return u.resources[resource]
}

// begin records that the resource has an object, and calls the waiting functions.
func (u *occupancy) begin(use *use) {
	u.mu.Lock()
	wakes := use.wakes
	use.used, use.wakes = true, nil
	u.mu.Unlock()
	for _, wake := range wakes {
		(*wake)()
	}
}

// Idle reports whether a resource has no objects. If so, the creation of the first one calls wake and waits for it.
// Idle also returns false if the server does not know: for resources of other servers, and in a cluster that other
// processes serve as well.
func (s *Server) Idle(resource schema.GroupResource, wake func()) bool {
	if s.connection == nil || s.Shared() {
		return false
	}
	u := &s.connection.usage
	u.mu.Lock()
	use := u.resources[resource]
	known := use != nil && !use.used
	if known {
		use.wakes = append(use.wakes, &wake) // before the datastore is read, so that no creation is missed
	}
	u.mu.Unlock()
	if !known {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	found, err := s.connection.client.Client.Get(ctx, use.prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil || len(found.Kvs) > 0 {
		u.mu.Lock()
		use.wakes = slices.DeleteFunc(use.wakes, func(other *func()) bool { return other == &wake })
		u.mu.Unlock()
		u.begin(use)
		return false
	}
	return true
}

// recording is a storage that records when an object is created.
type recording struct {
	storage.Interface
	usage *occupancy
	use   *use
}

func (c *sharedConnection) recordUse(store storage.Interface, resource schema.GroupResource,
	prefix, resourcePrefix string) storage.Interface {
	return &recording{store, &c.usage, c.usage.of(resource, path.Join("/", prefix, resourcePrefix)+"/")}
}

func (n *recording) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	defer n.usage.begin(n.use) // after an error, too: an object whose request timed out may be stored
	return n.Interface.Create(ctx, key, obj, out, ttl)
}

// GuaranteedUpdate implements storage.Interface. With ignoreNotFound it creates missing objects.
func (n *recording) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	if ignoreNotFound {
		defer n.usage.begin(n.use)
	}
	return n.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, cached)
}
