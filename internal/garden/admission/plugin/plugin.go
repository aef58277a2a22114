// Package plugin contains what the garden's admission plugins have in common: their factories and their dependencies.
//
// Plugins read Gardener objects through Reader, which reads from the API server's own storage: an object is visible as
// soon as it is created, while an informer could lag behind. Plugins may import nothing of the garden but this package,
// the validation helpers and the scheme.
package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
)

// Reader reads Gardener objects in their internal version from the storage of the API server. The returned objects are
// shared and must not be changed.
type Reader interface {
	// Get returns the object as it is stored now, or a NotFound API error if it does not exist.
	Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error)
	// List returns the objects of a namespace (of all namespaces if it is empty) that match the field selector (all
	// objects if it is nil).
	List(ctx context.Context, resource schema.GroupResource, namespace string, selector fields.Selector) ([]runtime.Object, error)
}

// FromCache is the resource version for lists with Dependencies.Kube that the API server answers from its watch cache
// as it is. Any other list waits, up to a tenth of a second, until the cache is as new as the datastore.
const FromCache = "0"

// Get calls Reader.Get and returns the object as a T.
func Get[T runtime.Object](ctx context.Context, r Reader, resource schema.GroupResource, namespace, name string) (T, error) {
	var none T
	obj, err := r.Get(ctx, resource, namespace, name)
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("storage of %s returned a %T, not a %T", resource, obj, none)
	}
	return typed, nil
}

// List calls Reader.List and returns the objects as a slice of T.
func List[T runtime.Object](ctx context.Context, r Reader, resource schema.GroupResource, namespace string,
	selector fields.Selector) ([]T, error) {
	objs, err := r.List(ctx, resource, namespace, selector)
	if err != nil {
		return nil, err
	}
	typed := make([]T, 0, len(objs))
	for _, obj := range objs {
		t, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("storage of %s returned a %T, not a %T", resource, obj, t)
		}
		typed = append(typed, t)
	}
	return typed, nil
}

// Dependencies are passed to the factory of each plugin.
type Dependencies struct {
	// Reader reads Gardener objects.
	Reader Reader
	// Kube reads and writes Kubernetes objects of the garden (Secrets, ConfigMaps, RBAC) without an informer cache.
	Kube kubernetes.Interface
	// Namespaces reads from the cache of the API server's Namespace informer; a miss should be confirmed with Kube.
	Namespaces corev1listers.NamespaceLister
	// Authorizer is the garden's authorizer, for plugins that check additional verbs.
	Authorizer authorizer.Authorizer
	// Clock is the landscape's clock.
	Clock clock.PassiveClock
}

// Factory creates one plugin.
type Factory struct {
	// Name is the plugin's name in Gardener, as in its documentation.
	Name string
	// New returns an admission.MutationInterface, an admission.ValidationInterface, or both in one.
	New func(Dependencies) (admission.Interface, error)
}
