package graphsync

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// staleAfter is how long the graph counts as current without a watch of one of its kinds. A restart of the API
// server, or the end of a watch, takes a few seconds; after a longer time the graph may still have edges that were
// removed.
const staleAfter = 30 * time.Second

// followed wraps a ListerWatcher to record since when there has been no watch: from the first attempt to watch or list
// until a list has been stored, or a watch continues from the last state. A watch on a dead connection ends by itself,
// because HTTP/2 connections are probed.
func (st *store) followed(watcher cache.ListerWatcher) cache.ListerWatcher {
	inner := cache.ToListerWatcherWithContext(watcher)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			st.lose()
			return inner.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			st.lose()
			w, err := inner.WatchWithContext(ctx, options)
			// A watch that begins with a list has not delivered anything yet; the list ends with a Replace.
			if err == nil && (options.SendInitialEvents == nil || !*options.SendInitialEvents) {
				st.found()
			}
			return w, err
		},
	}, watcher)
}

// lose records that there is no watch from now on, unless that is recorded already.
func (st *store) lose() {
	now := st.syncer.config.Clock.Now()
	st.lost.CompareAndSwap(nil, &now)
}

func (st *store) found() { st.lost.Store(nil) }

// stale returns for how long there has been no watch, 0 if that is at most staleAfter.
func (st *store) stale() time.Duration {
	lost := st.lost.Load()
	if lost == nil {
		return 0
	}
	if since := st.syncer.config.Clock.Since(*lost); since > staleAfter {
		return since
	}
	return 0
}
