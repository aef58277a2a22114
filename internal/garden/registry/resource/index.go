package resource

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// recentFor is how long a written object is looked up besides the watch cache, which is behind by milliseconds.
const recentFor = 5 * time.Second

// recent has the objects that were written through this store in the last seconds.
type recent struct {
	mu      sync.Mutex
	written []written // the oldest first
}

type written struct {
	at  time.Time
	key types.NamespacedName
	obj runtime.Object
}

func (r *recent) add(obj runtime.Object, dryRun []string) {
	accessor, err := meta.Accessor(obj)
	if err != nil || len(dryRun) > 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.written = append(r.written[r.expired(now):], written{now, types.NamespacedName{Namespace: accessor.GetNamespace(),
		Name: accessor.GetName()}, obj})
}

func (r *recent) expired(now time.Time) int {
	n, _ := slices.BinarySearchFunc(r.written, now.Add(-recentFor), func(w written,
		oldest time.Time) int {
		return w.at.Compare(oldest)
	})
	return n
}

// keys returns the names of the objects that match.
func (r *recent) keys(match func(runtime.Object) bool) sets.Set[types.NamespacedName] {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := sets.Set[types.NamespacedName]{}
	for _, w := range r.written[r.expired(time.Now()):] {
		if match(w.obj) {
			found.Insert(w.key)
		}
	}
	return found
}

// ByIndex returns the objects with a value in an index of the definition, in all namespaces. It misses none that was
// written through this store before.
func (s *Store) ByIndex(ctx context.Context, index, value string) ([]runtime.Object, error) {
	values := s.indexes[index]
	match := func(obj runtime.Object) bool { return slices.Contains(values(obj), value) }
	predicate := storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector(index, value), IndexFields: []string{index},
		GetAttrs: func(obj runtime.Object) (labels.Set, fields.Set, error) {
			if match(obj) {
				return nil, fields.Set{index: value}, nil
			}
			return nil, fields.Set{index: ""}, nil
		},
	}
	all := genericapirequest.WithNamespace(ctx, "")
	list, err := s.ListPredicate(all, predicate, &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	found, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	missing := s.recent.keys(match)
	for _, obj := range found {
		if accessor, err := meta.Accessor(obj); err == nil {
			missing.Delete(types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()})
		}
	}
	for key := range missing { // the watch cache does not have it yet, or it was changed or deleted meanwhile
		obj, err := s.Get(genericapirequest.WithNamespace(ctx, key.Namespace), key.Name, &metav1.GetOptions{})
		if err == nil && match(obj) {
			found = append(found, obj)
		} else if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return found, nil
}
