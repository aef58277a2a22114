package restriction

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Reader reads live objects, not from a cache.
type Reader interface {
	// Get reads one object of a resource into obj, which has the resource's versioned type. If the object does not
	// exist, it returns an error for which apierrors.IsNotFound is true. namespace is "" for cluster-scoped resources.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error
	// List reads all objects of a resource, in all namespaces if namespace is "", into list, which has the resource's
	// list type.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string, list runtime.Object) error
}

// NewReader returns a Reader with a client, whose user needs the permissions of ReadRules.
func NewReader(client dynamic.Interface) Reader { return dynamicReader{client} }

// listed are the resources that are listed; of others, single objects are read.
var listed = []schema.GroupVersionResource{managedSeeds.resource}

// namespaces are read for the Project of a Shoot.
var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// ReadRules returns the permissions that the user of a Reader needs: to read the objects on which decisions depend, and
// to check whether objects that are created exist.
func ReadRules() []rbacv1.PolicyRule {
	resources := append(slices.Clone(listed), namespaces)
	for _, rule := range rules() {
		// A gardenlet may read only Leases that it may create, so Leases are not read.
		if !slices.Contains(resources, rule.resource) && rule.resource != leases.resource {
			resources = append(resources, rule.resource)
		}
	}
	var all []rbacv1.PolicyRule
	for _, resource := range resources {
		verbs := []string{"get"}
		if slices.Contains(listed, resource) {
			verbs = append(verbs, "list")
		}
		all = append(all, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs})
	}
	return all
}

type dynamicReader struct{ client dynamic.Interface }

func (r dynamicReader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	found, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		// The path is unknown, which says nothing about the object.
		return fmt.Errorf("the garden does not serve %s: %s", resource.GroupResource(), err.Error())
	}
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, obj)
}

func (r dynamicReader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, list runtime.Object) error {
	found, err := r.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), list)
}

// get reads an object on which the decision depends. If it does not exist, the request is refused; any other failure is
// a server error.
func (r *request) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	if name == "" {
		return forbidden("the %s on which the answer depends are not named", resource.Resource)
	}
	found, err := r.find(ctx, resource, namespace, name, obj)
	if err == nil && !found {
		return forbidden("%s: %s %q not found", foreign(r.seed), resource.Resource, key(namespace, name))
	}
	return err
}

// find is like get for objects that may be missing.
func (r *request) find(ctx context.Context, resource schema.GroupVersionResource, namespace, name string,
	obj runtime.Object) (bool, error) {
	if name == "" {
		return false, nil
	}
	err := r.reader.Get(ctx, resource, namespace, name, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s, on which the answer depends: %w", resource.Resource, key(namespace, name), err)
	}
	return true, nil
}

func (r *request) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, list runtime.Object) error {
	if err := r.reader.List(ctx, resource, namespace, list); err != nil {
		return fmt.Errorf("listing %s, on which the answer depends: %w", resource.Resource, err)
	}
	return nil
}

func (r *request) shoot(ctx context.Context, namespace, name string) (*corev1beta1.Shoot, error) {
	shoot := &corev1beta1.Shoot{}
	return shoot, r.get(ctx, shoots.resource, namespace, name, shoot)
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
