package component

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Stoppable has a manager end also while it waits for its first lists: controller-runtime (v0.24) waits on, and busily, for a
// cache that says that it did not sync. The function that is returned is to be called when the manager is to end.
func Stoppable(o *manager.Options) context.CancelFunc {
	base, cancel := context.WithCancel(context.Background())
	o.BaseContext = func() context.Context { return base }
	o.NewCache = NewCache
	return cancel
}

// NewCache makes a cache that reports that it has synced when its caller no longer waits for that.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	return &givingUp{c}, nil
}

type givingUp struct{ cache.Cache }

// WaitForCacheSync says whether there is nothing to wait for.
func (g *givingUp) WaitForCacheSync(ctx context.Context) bool {
	return g.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}
