package security

import (
	"context"
	"fmt"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/securityvalidation"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

var tokenRequestGVK = securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest")

// tokenREST is the subresource that issues tokens. It stores nothing.
type tokenREST struct {
	identities rest.Getter
	reader     plugin.Reader
	issuer     *Issuer
}

var (
	_ rest.NamedCreater             = &tokenREST{}
	_ rest.GroupVersionKindProvider = &tokenREST{}
)

func newTokenREST(identities rest.Getter, reader plugin.Reader, issuer *Issuer) *tokenREST {
	return &tokenREST{identities: identities, reader: reader, issuer: issuer}
}

// New implements rest.Storage.
func (t *tokenREST) New() runtime.Object { return &gardensecurity.TokenRequest{} }

// Destroy implements rest.Storage.
func (t *tokenREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (t *tokenREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return tokenRequestGVK
}

// Create implements rest.NamedCreater.
func (t *tokenREST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	request, ok := obj.(*gardensecurity.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a TokenRequest is needed, this is a %T", obj))
	}
	identity, err := t.identity(ctx, name, request)
	if err != nil {
		return nil, err
	}
	caller, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("the request has no user")
	}
	claim, err := claimOf(ctx, t.reader, identity, caller, request.Spec.ContextObject)
	if err != nil {
		return nil, err
	}
	token, expiry, err := t.issuer.issue(identity.Status.Sub, identity.Spec.Audiences, request.Spec.ExpirationSeconds, claim)
	if err != nil {
		return nil, fmt.Errorf("making a token of the WorkloadIdentity %s/%s: %w", identity.Namespace, identity.Name, err)
	}
	request.ObjectMeta = metav1.ObjectMeta{Name: identity.Name, Namespace: identity.Namespace,
		CreationTimestamp: metav1.NewTime(landscapeclock.Real(t.issuer.Clock))}
	request.Status = gardensecurity.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expiry)}
	return request, nil
}

// identity returns the WorkloadIdentity of the token, or an error if the request is invalid.
func (t *tokenREST) identity(ctx context.Context, name string, request *gardensecurity.TokenRequest) (
	*gardensecurity.WorkloadIdentity, error) {
	metadata, invalid := field.NewPath("metadata"), func(errs ...*field.Error) error {
		return apierrors.NewInvalid(tokenRequestGVK.GroupKind(), name, errs)
	}
	if request.Name != "" && request.Name != name {
		return nil, invalid(field.Invalid(metadata.Child("name"), request.Name, "must be that of the WorkloadIdentity, "+name))
	}
	if namespace := genericapirequest.NamespaceValue(ctx); request.Namespace != "" && request.Namespace != namespace {
		return nil, invalid(field.Invalid(metadata.Child("namespace"), request.Namespace, "must be that of the WorkloadIdentity, "+namespace))
	}
	identity, err := resource.Get[*gardensecurity.WorkloadIdentity](ctx, t.identities, name)
	if err != nil {
		return nil, err
	}
	if errs := validation.ValidateTokenRequest(request); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	return identity, nil
}
