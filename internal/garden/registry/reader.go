package registry

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// Reader reads the objects as they are stored, in their internal version.
type Reader struct {
	stores map[schema.GroupResource]*resource.Store
}

var _ plugin.Reader = &Reader{}

func newReader() *Reader { return &Reader{stores: map[schema.GroupResource]*resource.Store{}} }

func (r *Reader) add(groups []Group) {
	for _, group := range groups {
		for _, storage := range group.Versions {
			for path, s := range storage {
				if store, ok := s.(*resource.Store); ok && !strings.Contains(path, "/") {
					r.stores[schema.GroupResource{Group: group.Name, Resource: path}] = store
				}
			}
		}
	}
}

// Get implements plugin.Reader.
func (r *Reader) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (runtime.Object, error) {
	store, err := r.store(gr)
	if err != nil {
		return nil, err
	}
	// The names come from objects that may not have been validated yet.
	if name == "" || len(path.IsValidPathSegmentName(name)) > 0 || len(path.IsValidPathSegmentName(namespace)) > 0 {
		return nil, apierrors.NewNotFound(gr, name)
	}
	return store.Get(genericapirequest.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
}

// List implements plugin.Reader. It answers from the watch cache, which is a few milliseconds behind at most. If the
// result is empty, it lists again with a consistent read, so that it does not miss an object that has just been
// created.
func (r *Reader) List(ctx context.Context, gr schema.GroupResource, namespace string, selector fields.Selector) ([]runtime.Object, error) {
	store, err := r.store(gr)
	if err != nil {
		return nil, err
	}
	ctx = genericapirequest.WithNamespace(ctx, namespace)
	for _, version := range []string{"0", ""} {
		list, err := store.List(ctx, &metainternalversion.ListOptions{FieldSelector: selector, ResourceVersion: version})
		if err != nil {
			return nil, err
		}
		if objs, err := meta.ExtractList(list); err != nil || len(objs) > 0 {
			return objs, err
		}
	}
	return nil, nil
}

func (r *Reader) store(gr schema.GroupResource) (*resource.Store, error) {
	store, ok := r.stores[gr]
	if !ok {
		return nil, fmt.Errorf("no storage for %s", gr)
	}
	return store, nil
}
