// Package request reads admission requests: which object they concern, its old state, and whether the user may read
// other objects.
//
// It may import the API machinery only. It does not change the requests.
package request

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// IsForKind reports whether the request is for an object of the given kind itself and not for a subresource of it.
func IsForKind(a admission.Attributes, kind schema.GroupKind) bool {
	return a.GetKind().GroupKind() == kind && a.GetSubresource() == ""
}

// Objects returns the new and the old object of a create or update request; for a create request, the old object is
// empty. It returns a BadRequest error if the request carries an object of another type.
func Objects[T any, P interface {
	*T
	runtime.Object
}](a admission.Attributes) (obj, old P, err error) {
	if obj, err = typed[T, P](a, a.GetObject()); err != nil {
		return nil, nil, err
	}
	if a.GetOperation() == admission.Create {
		return obj, new(T), nil
	}
	old, err = typed[T, P](a, a.GetOldObject())
	return obj, old, err
}

func typed[T any, P interface {
	*T
	runtime.Object
}](a admission.Attributes, obj runtime.Object) (P, error) {
	t, ok := obj.(P)
	if !ok || t == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request is about a %s but carries a %T", a.GetKind().Kind, obj))
	}
	return t, nil
}

// IsDeleting reports whether the request updates an object that is being deleted. Such an update is not validated:
// otherwise a deleted reference would block the removal of the object's finalizers.
func IsDeleting(a admission.Attributes, obj metav1.Object) bool {
	return a.GetOperation() == admission.Update && obj.GetDeletionTimestamp() != nil
}

// Name returns the name of the requested object. For a DeleteCollection request, admission is called with an empty name
// for each object, whose name is then read from the old object.
func Name(a admission.Attributes) string {
	if name := a.GetName(); name != "" {
		return name
	}
	for _, obj := range []runtime.Object{a.GetOldObject(), a.GetObject()} {
		if obj == nil {
			continue
		}
		if m, err := meta.Accessor(obj); err == nil {
			return m.GetName()
		}
	}
	return ""
}

// MayGet reports whether the user of the request may get the given object.
func MayGet(ctx context.Context, authz authorizer.Authorizer, a admission.Attributes, resource schema.GroupVersionResource,
	namespace, name string) (bool, error) {
	decision, _, err := authz.Authorize(ctx, authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            "get",
		APIGroup:        resource.Group,
		APIVersion:      resource.Version,
		Resource:        resource.Resource,
		Namespace:       namespace,
		Name:            name,
		ResourceRequest: true,
	})
	if err != nil {
		return false, fmt.Errorf("asking whether the user may read %s %s/%s: %w", resource.GroupResource(), namespace, name, err)
	}
	return decision == authorizer.DecisionAllow, nil
}
