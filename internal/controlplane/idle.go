package controlplane

import (
	"context"
	"path"
	"slices"
	"strings"
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
	// used is true once an object has been created or found.
	used    bool
	waiters []*waiter
}

// waiter waits for the first object of a resource, except the one with this namespace and name.
type waiter struct {
	except string
	wake   func()
}

// ignores reports whether the waiter does not wait for the object that is stored under a key.
func (w *waiter) ignores(key string) bool {
	return w.except != "" && strings.HasSuffix(key, "/"+w.except)
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

// begin records that the resource has an object, which is stored under key, and wakes those that wait for it.
func (u *occupancy) begin(use *use, key string) {
	u.mu.Lock()
	var woken []*waiter
	use.used = true
	use.waiters = slices.DeleteFunc(use.waiters, func(w *waiter) bool {
		if w.ignores(key) {
			return false
		}
		woken = append(woken, w)
		return true
	})
	u.mu.Unlock()
	for _, w := range woken {
		w.wake()
	}
}

// Idle reports whether a resource has no objects, except the one with the given namespace and name, "" for none. If so, the
// creation of the first one calls wake and waits for it. Idle also returns false if the server does not know: for resources of
// other servers, and in a cluster that other processes serve as well.
func (s *Server) Idle(resource schema.GroupResource, except string, wake func()) bool {
	if s.connection == nil || s.Shared() {
		return false
	}
	u, w := &s.connection.usage, &waiter{except, wake}
	u.mu.Lock()
	use := u.resources[resource]
	if use == nil || use.used && except == "" {
		u.mu.Unlock()
		return false
	}
	use.waiters = append(use.waiters, w) // before the datastore is read, so that no creation is missed
	u.mu.Unlock()
	found := s.firstKeys(use.prefix)
	if !slices.ContainsFunc(found, func(key string) bool { return !w.ignores(key) }) {
		return true
	}
	u.mu.Lock()
	use.waiters = slices.DeleteFunc(use.waiters, func(other *waiter) bool { return other == w })
	u.mu.Unlock()
	for _, key := range found {
		u.begin(use, key)
	}
	return false
}

// firstKeys returns at most two keys with a prefix. If the datastore does not answer, there may be an object: the key is empty.
func (s *Server) firstKeys(prefix string) (keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	found, err := s.connection.client.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(2), clientv3.WithKeysOnly())
	if err != nil {
		return []string{""}
	}
	for _, kv := range found.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
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
	defer n.usage.begin(n.use, key) // after an error, too: an object whose request timed out may be stored
	return n.Interface.Create(ctx, key, obj, out, ttl)
}

// GuaranteedUpdate implements storage.Interface. With ignoreNotFound it creates missing objects.
func (n *recording) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	if ignoreNotFound {
		defer n.usage.begin(n.use, key)
	}
	return n.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, cached)
}
