// Package plugin is what the garden's admission plugins have in common: how one is made and what it may read.
//
// Plugins read Gardener objects through Reader, which goes to the API server's own storage: an object that was created
// before is seen at once, with no informer to lag behind. They may import nothing of the garden but this package,
// validation helpers and scheme.
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

// Reader reads Gardener objects in their internal version from the storage of the API server. What it returns is
// shared and must not be changed.
type Reader interface {
	// Get returns one object, as it is stored now; a NotFound API error if there is none.
	Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error)
	// List returns the objects of a namespace (all, if empty) that match the field selector (nil: all).
	List(ctx context.Context, resource schema.GroupResource, namespace string, selector fields.Selector) ([]runtime.Object, error)
}

// FromCache is the resource version for lists with Kube that the API server answers from its watch cache as it is. Any
// other list waits, up to a tenth of a second, until the cache has seen what the datastore has.
const FromCache = "0"

// Get is Reader.Get for a known type.
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

// List is Reader.List for a known type.
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

// Dependencies are what a plugin can be given.
type Dependencies struct {
	// Reader reads Gardener objects.
	Reader Reader
	// Kube reads and writes Kubernetes objects of the garden (Secrets, ConfigMaps, RBAC). Always live.
	Kube kubernetes.Interface
	// Namespaces is backed by the informer the API server has anyway; a miss should be confirmed with Kube.
	Namespaces corev1listers.NamespaceLister
	// Authorizer is the garden's authorizer, for plugins that check further verbs.
	Authorizer authorizer.Authorizer
	// Clock is the landscape's clock.
	Clock clock.PassiveClock
}

// Factory makes one plugin.
type Factory struct {
	// Name is the plugin's name in Gardener, as in its documentation.
	Name string
	// New returns an admission.MutationInterface, an admission.ValidationInterface, or both in one.
	New func(Dependencies) (admission.Interface, error)
}
