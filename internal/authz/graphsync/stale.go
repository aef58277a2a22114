package graphsync

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// DefaultStaleAfter is how long the graph counts as current without a watch of one of its kinds. A restart of the API
// server, or the end of a watch, takes a few seconds; after a longer time the graph may still have edges that were
// removed.
const DefaultStaleAfter = 30 * time.Second

// followed is a ListerWatcher that records since when there has been no watch: from the first attempt to watch or list
// until a list has been stored, or a watch continues from the last state. A watch on a dead connection ends by itself,
// because HTTP/2 connections are probed.
type followed struct {
	cache.ListerWatcherWithContext
	store *store
	// noWatchList is what the wrapped ListerWatcher reports to the reflector.
	noWatchList bool
}

var _ cache.ListerWatcherWithContext = &followed{}

func newFollowed(st *store, watcher cache.ListerWatcher) *followed {
	return &followed{cache.ToListerWatcherWithContext(watcher), st, watchlist.DoesClientNotSupportWatchListSemantics(watcher)}
}

// IsWatchListSemanticsUnSupported tells the reflector whether it can stream lists.
func (f *followed) IsWatchListSemanticsUnSupported() bool { return f.noWatchList }

func (f *followed) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

func (f *followed) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

func (f *followed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	f.store.lose()
	return f.ListerWatcherWithContext.ListWithContext(ctx, options)
}

func (f *followed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	f.store.lose()
	w, err := f.ListerWatcherWithContext.WatchWithContext(ctx, options)
	// A watch that begins with a list has not delivered anything yet; the list ends with a Replace.
	if err == nil && (options.SendInitialEvents == nil || !*options.SendInitialEvents) {
		f.store.found()
	}
	return w, err
}

// lose records that there is no watch from now on, unless that is recorded already.
func (st *store) lose() {
	now := st.syncer.config.Clock.Now()
	st.lost.CompareAndSwap(nil, &now)
}

func (st *store) found() { st.lost.Store(nil) }

// stale returns for how long there has been no watch, 0 if that is at most StaleAfter.
func (st *store) stale() time.Duration {
	lost := st.lost.Load()
	if lost == nil {
		return 0
	}
	if since := st.syncer.config.Clock.Since(*lost); since > st.syncer.config.StaleAfter {
		return since
	}
	return 0
}
