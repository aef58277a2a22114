// Package plugin contains what the garden's admission plugins have in common: their factories and their dependencies.
//
// Plugins read Gardener objects through Reader, which reads from the API server's own storage: an object is visible as
// soon as it is created, while an informer could lag behind. The package may import request.
package plugin

import (
	"context"
	"fmt"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// Reader reads Gardener objects in their internal version from the storage of the API server. The returned objects are
// shared and must not be changed.
type Reader interface {
	// Get returns the object as it is stored now, or a NotFound API error if it does not exist.
	Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error)
	// List returns the objects of a namespace (of all namespaces if it is empty) that match the field selector (all
	// objects if it is nil).
	List(ctx context.Context, resource schema.GroupResource, namespace string, selector fields.Selector) ([]runtime.Object, error)
	// ByIndex returns the objects of all namespaces with a value in an index of the resource. It misses none that this
	// API server has written.
	ByIndex(ctx context.Context, resource schema.GroupResource, index, value string) ([]runtime.Object, error)
}

// Fresh returns a reader whose lists have everything that was written before. Other lists may be a moment behind, so that a plugin
// lists again before it refuses what it has not found. It returns the reader itself if its lists are never behind.
func Fresh(r Reader) Reader {
	if behind, ok := r.(interface{ Fresh() Reader }); ok {
		return behind.Fresh()
	}
	return r
}

// Indexes of Shoots, by spec.dns.domain.
const (
	IndexDomain       = "domain"
	IndexParentDomain = "parent-domain" // all domains that the domain is in
)

// ParentDomains returns the domains that a domain is in, the nearest first.
func ParentDomains(domain string) (all []string) {
	for _, rest, found := strings.Cut(domain, "."); found; _, rest, found = strings.Cut(rest, ".") {
		all = append(all, rest)
	}
	return all
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

// SecretsWithRole returns the Secrets of the garden namespace with a value of the label gardener.cloud/role.
func SecretsWithRole(ctx context.Context, kube kubernetes.Interface, role string) ([]corev1.Secret, error) {
	list, err := kube.CoreV1().Secrets(v1beta1constants.GardenNamespace).List(ctx, metav1.ListOptions{
		ResourceVersion: FromCache,
		LabelSelector:   v1beta1constants.GardenRole + "=" + role})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Dependencies are passed to the factory of each plugin.
type Dependencies struct {
	// Reader reads Gardener objects.
	Reader Reader
	// Kube reads and writes Kubernetes objects of the garden (Secrets, ConfigMaps, RBAC) without an informer cache.
	Kube kubernetes.Interface
	// Authorizer is the garden's authorizer, for plugins that check additional verbs.
	Authorizer authorizer.Authorizer
	// Clock is the landscape's clock.
	Clock clock.PassiveClock
}

// Func admits or validates a request. The request is refused with the error, as request.ToAPIError converts it.
type Func func(ctx context.Context, deps Dependencies, a admission.Attributes) error

// Factory creates one plugin.
type Factory struct {
	// Name is the plugin's name in Gardener, as in its documentation.
	Name string
	// Off says that it is not enabled by default, as in Gardener.
	Off bool
	// Operations are those that the plugin handles.
	Operations []admission.Operation
	// Admit completes objects, and Validate only checks them. One of the two may be nil.
	Admit, Validate Func
}

// These are the operations that most plugins handle.
var (
	OnCreate         = []admission.Operation{admission.Create}
	OnCreateOrUpdate = []admission.Operation{admission.Create, admission.Update}
	OnAnyChange      = []admission.Operation{admission.Create, admission.Update, admission.Delete}
)

// New creates the plugin.
func (f Factory) New(deps Dependencies) admission.Interface {
	return &handler{admission.NewHandler(f.Operations...), f, deps}
}

// handler is a plugin. It admits or validates every request if its factory has no function for it.
type handler struct {
	*admission.Handler
	factory Factory
	deps    Dependencies
}

var (
	_ admission.MutationInterface   = &handler{}
	_ admission.ValidationInterface = &handler{}
)

// Admit implements admission.MutationInterface.
func (h *handler) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return h.handle(ctx, a, h.factory.Admit)
}

// Validate implements admission.ValidationInterface.
func (h *handler) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return h.handle(ctx, a, h.factory.Validate)
}

func (h *handler) handle(ctx context.Context, a admission.Attributes, f Func) error {
	if f == nil {
		return nil
	}
	return request.ToAPIError(a, f(ctx, h.deps, a))
}

// ObjectFunc is a Func for requests for objects of one type. The objects are those of request.Objects.
type ObjectFunc[P any] func(ctx context.Context, deps Dependencies, a admission.Attributes, obj, old P) error

// ForKind calls f for requests that request.IsForKind selects, and accepts all others.
func ForKind[T any, P request.Object[T]](kind schema.GroupKind, f ObjectFunc[P], subresources ...string) Func {
	return func(ctx context.Context, deps Dependencies, a admission.Attributes) error {
		if !request.IsForKind(a, kind, subresources...) {
			return nil
		}
		obj, old, err := request.Objects[T, P](a)
		if err != nil {
			return err
		}
		return f(ctx, deps, a, obj, old)
	}
}
