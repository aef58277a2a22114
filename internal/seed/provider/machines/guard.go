package machines

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Guard keeps the machine controller from working in a namespace while the migration of a Worker takes over its machines.
// The zero value is ready for use.
type Guard struct {
	mu         sync.Mutex
	namespaces map[string]*guarded
}

type guarded struct {
	*semaphore.Weighted
	users int
}

const allShares = 1 << 20

// RLock acquires shared access to a namespace. It waits until an owner is done or the context ends.
func (g *Guard) RLock(ctx context.Context, namespace string) (release func(), err error) {
	return g.acquire(ctx, namespace, 1)
}

// Lock acquires exclusive access to a namespace. It waits until all others are done or the context ends.
func (g *Guard) Lock(ctx context.Context, namespace string) (release func(), err error) {
	return g.acquire(ctx, namespace, allShares)
}

func (g *Guard) acquire(ctx context.Context, namespace string, share int64) (func(), error) {
	g.mu.Lock()
	if g.namespaces == nil {
		g.namespaces = map[string]*guarded{}
	}
	entry := g.namespaces[namespace]
	if entry == nil {
		entry = &guarded{Weighted: semaphore.NewWeighted(allShares)}
		g.namespaces[namespace] = entry
	}
	entry.users++
	g.mu.Unlock()
	err := entry.Acquire(ctx, share)
	leave := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if entry.users--; entry.users == 0 {
			delete(g.namespaces, namespace)
		}
	}
	if err != nil {
		leave()
		return nil, err
	}
	return func() { entry.Release(share); leave() }, nil
}
