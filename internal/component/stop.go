package component

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Stoppable lets a manager end also while it waits for its first lists: controller-runtime (v0.24) keeps waiting, in a
// busy loop, for a cache that reports that it did not sync. The caller calls the returned function to end the manager.
func Stoppable(o *manager.Options) context.CancelFunc {
	base, cancel := context.WithCancel(context.Background())
	o.BaseContext = func() context.Context { return base }
	o.NewCache = NewCache
	return cancel
}

// NewCache returns a cache that also reports that it has synced if the context of the waiting caller has ended.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	return &givingUp{c}, nil
}

type givingUp struct{ cache.Cache }

// WaitForCacheSync reports whether the cache has synced or the context has ended.
func (g *givingUp) WaitForCacheSync(ctx context.Context) bool {
	return g.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}
