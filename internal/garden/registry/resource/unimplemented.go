package resource

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Unimplemented is a subresource that exists for those who look for it (discovery, RBAC, OpenAPI) and answers 501.
type Unimplemented struct {
	object rest.Getter
	gvk    schema.GroupVersionKind
	newFn  func() runtime.Object
	what   string
}

var (
	_ rest.NamedCreater             = &Unimplemented{}
	_ rest.GroupVersionKindProvider = &Unimplemented{}
)

// NewUnimplemented makes the subresource of object that takes the kind given.
func NewUnimplemented(object rest.Getter, gvk schema.GroupVersionKind, newFn func() runtime.Object, what string) *Unimplemented {
	return &Unimplemented{object: object, gvk: gvk, newFn: newFn, what: what}
}

// New implements rest.Storage.
func (u *Unimplemented) New() runtime.Object { return u.newFn() }

// Destroy implements rest.Storage.
func (u *Unimplemented) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (u *Unimplemented) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return u.gvk }

// Create implements rest.NamedCreater: 404 if the object is not there, else 501.
func (u *Unimplemented) Create(ctx context.Context, name string, _ runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if _, err := u.object.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotImplemented,
		Reason:  "NotImplemented",
		Message: fmt.Sprintf("gardenlite does not serve %s yet", u.what),
	}}
}
