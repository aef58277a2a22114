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

// DefaultStaleAfter is how long the graph is taken for current without a watch of one of its kinds. An API server that
// starts anew, or a watch that ends, costs a few seconds; during a longer one the graph may have missed edges that were
// removed.
const DefaultStaleAfter = 30 * time.Second

// followed is a ListerWatcher that notes since when there has been no watch: from the first attempt to get one, or to list
// again, until a list has been taken in or a watch follows on what was read before. A watch whose connection hangs ends by
// itself, because HTTP/2 connections are probed.
type followed struct {
	cache.ListerWatcherWithContext
	store *store
	// noWatchList passes on what the wrapped one says to the reflector.
	noWatchList bool
}

var _ cache.ListerWatcherWithContext = &followed{}

func newFollowed(st *store, watcher cache.ListerWatcher) *followed {
	return &followed{cache.ToListerWatcherWithContext(watcher), st, watchlist.DoesClientNotSupportWatchListSemantics(watcher)}
}

// IsWatchListSemanticsUnSupported is how a reflector asks whether a list may be streamed.
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
	// One that begins with a list has told nothing yet; its end is a Replace.
	if err == nil && (options.SendInitialEvents == nil || !*options.SendInitialEvents) {
		f.store.found()
	}
	return w, err
}

// lose notes that there is no watch from now on, if it is not noted yet.
func (st *store) lose() {
	now := st.syncer.config.Clock.Now()
	st.lost.CompareAndSwap(nil, &now)
}

func (st *store) found() { st.lost.Store(nil) }

// stale is for how long there has been no watch, 0 if that is not too long.
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
