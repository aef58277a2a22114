// Package request reads admission requests: which object they concern, its old state, and whether the user may read
// other objects. It also converts errors to the answer.
//
// It may import the API machinery only. It does not change the requests.
package request

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// AnySubresource stands for all subresources in IsForKind.
const AnySubresource = "*"

// IsForKind reports whether the request is for an object of the given kind itself or one of the given subresources of
// it.
func IsForKind(a admission.Attributes, kind schema.GroupKind, subresources ...string) bool {
	return a.GetKind().GroupKind() == kind && (a.GetSubresource() == "" || slices.Contains(subresources, AnySubresource) ||
		slices.Contains(subresources, a.GetSubresource()))
}

// Object is an API object of type T.
type Object[T any] interface {
	*T
	runtime.Object
}

// Objects returns the new and the old object of a request. For a create request, the old object is empty; for a delete
// request, both are the stored object. It returns a BadRequest error if the request carries an object of another type.
func Objects[T any, P Object[T]](a admission.Attributes) (obj, old P, err error) {
	old = new(T)
	if a.GetOperation() != admission.Create {
		if old, err = typed[T, P](a, a.GetOldObject()); err != nil {
			return nil, nil, err
		}
	}
	if a.GetOperation() == admission.Delete {
		return old, old, nil
	}
	obj, err = typed[T, P](a, a.GetObject())
	return obj, old, err
}

func typed[T any, P Object[T]](a admission.Attributes, obj runtime.Object) (P, error) {
	t, ok := obj.(P)
	if !ok || t == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request is about a %s but carries a %T", a.GetKind().Kind, obj))
	}
	return t, nil
}

// ToAPIError converts err to the API error that answers the request: API errors are returned unchanged; field errors
// mean that the object is wrong and become Forbidden; any other error becomes an InternalError. It returns nil for nil.
func ToAPIError(a admission.Attributes, err error) error {
	if err == nil {
		return nil
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	if fieldErr := (*field.Error)(nil); errors.As(err, &fieldErr) {
		return admission.NewForbidden(a, err)
	}
	return apierrors.NewInternalError(err)
}

// Forbidden returns a Forbidden error with all the field errors, and nil if there are none.
func Forbidden(a admission.Attributes, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return admission.NewForbidden(a, errs.ToAggregate())
}

// IsDeleting reports whether the request updates an object that is being deleted. Such an update is not validated:
// otherwise a deleted reference would block the removal of the object's finalizers.
func IsDeleting(a admission.Attributes, obj metav1.Object) bool {
	return a.GetOperation() == admission.Update && obj.GetDeletionTimestamp() != nil
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
