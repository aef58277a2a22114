// Package request reads admission requests: which object they are about, what it was before and who asks.
//
// It may import the API machinery only. It changes nothing.
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

// IsAbout says whether a request is about an object of a kind itself and not about a subresource of it.
func IsAbout(a admission.Attributes, kind schema.GroupKind) bool {
	return a.GetKind().GroupKind() == kind && a.GetSubresource() == ""
}

// Objects are the object of a request to create or update, and what it was before: empty if it is created. It fails with
// a BadRequest error if the request carries something else.
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

// IsDeleting says whether a request updates an object that is being deleted. Such an update is not validated:
// otherwise a deleted reference blocks the removal of the object's finalizers.
func IsDeleting(a admission.Attributes, obj metav1.Object) bool {
	return a.GetOperation() == admission.Update && obj.GetDeletionTimestamp() != nil
}

// Name is the name of the object that a request is about. A request to delete a collection has none; it is asked for
// each object, which is the old object then.
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

// MayGet says whether the user of a request may read another object.
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
