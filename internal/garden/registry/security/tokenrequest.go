package security

import (
	"context"
	"fmt"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/security"
)

var tokenRequestGVK = securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest")

// tokenREST is the subresource that gives out tokens. It checks requests as Gardener does; tokens it has none yet.
type tokenREST struct {
	*resource.Unimplemented
	identities rest.Getter
}

func newTokenREST(identities rest.Getter) *tokenREST {
	return &tokenREST{identities: identities, Unimplemented: resource.NewUnimplemented(identities, tokenRequestGVK,
		func() runtime.Object { return &gardensecurity.TokenRequest{} }, "workloadidentities/token")}
}

// Create implements rest.NamedCreater.
func (t *tokenREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	request, ok := obj.(*gardensecurity.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a TokenRequest is needed, this is a %T", obj))
	}
	metadata, invalid := field.NewPath("metadata"), func(errs ...*field.Error) error {
		return apierrors.NewInvalid(tokenRequestGVK.GroupKind(), name, errs)
	}
	if request.Name != "" && request.Name != name {
		return nil, invalid(field.Invalid(metadata.Child("name"), request.Name, "must be that of the WorkloadIdentity, "+name))
	}
	if namespace := genericapirequest.NamespaceValue(ctx); request.Namespace != "" && request.Namespace != namespace {
		return nil, invalid(field.Invalid(metadata.Child("namespace"), request.Namespace, "must be that of the WorkloadIdentity, "+namespace))
	}
	if _, err := t.identities.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if errs := validation.ValidateTokenRequest(request); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	return t.Unimplemented.Create(ctx, name, obj, admit, options)
}
