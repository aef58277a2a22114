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

// occupancy knows of which resources there are objects.
type occupancy struct {
	mu        sync.Mutex
	resources map[schema.GroupResource]*use
}

// use is what is known of a resource.
type use struct {
	prefix string
	// used says that an object has been created, or was there; then wakes is empty.
	used  bool
	wakes []*func()
}

// of is what is known of a resource that is kept below a prefix.
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

// begin notes that there is an object.
func (u *occupancy) begin(use *use) {
	u.mu.Lock()
	wakes := use.wakes
	use.used, use.wakes = true, nil
	u.mu.Unlock()
	for _, wake := range wakes {
		(*wake)()
	}
}

// Idle says whether a resource has no objects, and if so, has wake called when the first one is created, which waits for
// it. It says no as well if it does not know: of resources of others, and in a cluster that other processes run as well.
func (s *Server) Idle(resource schema.GroupResource, wake func()) bool {
	if s.connection == nil || s.Shared() {
		return false
	}
	u := &s.connection.usage
	u.mu.Lock()
	use := u.resources[resource]
	known := use != nil && !use.used
	if known {
		use.wakes = append(use.wakes, &wake) // before it is asked what there is, so that nothing is missed
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

// noticing is a storage that notes when an object is created.
type noticing struct {
	storage.Interface
	usage *occupancy
	use   *use
}

func (c *sharedConnection) notice(store storage.Interface, resource schema.GroupResource, prefix, resourcePrefix string) storage.Interface {
	return &noticing{store, &c.usage, c.usage.of(resource, path.Join("/", prefix, resourcePrefix)+"/")}
}

// Create implements storage.Interface.
func (n *noticing) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	err := n.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil {
		n.usage.begin(n.use)
	}
	return err
}

// GuaranteedUpdate implements storage.Interface. It creates what is not there, if it is told to.
func (n *noticing) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	err := n.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, cached)
	if err == nil && ignoreNotFound {
		n.usage.begin(n.use)
	}
	return err
}
