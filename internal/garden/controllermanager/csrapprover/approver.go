package csrapprover

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "csr-autoapprove"

// These are the reasons in the conditions that the controller sets, as in Gardener.
const (
	reasonApproved = "AutoApproved"
	reasonDenied   = "RequestDenied"
)

// retryUnauthorized is the delay before the next check whether the requester is authorized: its RBAC objects may not
// have been created yet.
const retryUnauthorized = 30 * time.Second

// Reconciler approves and denies CertificateSigningRequests of gardenlets.
type Reconciler struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	return component.NewControllerBuilder(mgr, ControllerName).For(&certificatesv1.CertificateSigningRequest{}).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile approves or denies a pending request.
func (r *Reconciler) Reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	if decided(csr) || csr.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	x509Request, err := parse(csr)
	if err != nil {
		log.Info("Not a request that can be read", "reason", err.Error())
		return reconcile.Result{}, nil
	}
	seed, why := seedOf(csr, x509Request)
	if why != "" {
		log.V(1).Info("Not a request for a seed's client certificate", "reason", why)
		return reconcile.Result{}, nil
	}
	log = log.WithValues("seed", seed, "user", csr.Spec.Username)
	refusal, err := r.refusal(ctx, csr, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	if refusal != "" {
		log.Info("Denying a gardenlet's certificate", "reason", refusal)
		return reconcile.Result{},
			r.decide(ctx, csr, certificatesv1.CertificateDenied, reasonDenied, "The gardenlet's client certificate is denied: "+refusal)
	}
	if allowed, reason, err := r.authorized(ctx, csr); err != nil {
		return reconcile.Result{}, err
	} else if !allowed {
		log.Info("The author of the request may not create certificatesigningrequests/seedclient", "reason", reason)
		return reconcile.Result{RequeueAfter: retryUnauthorized}, nil
	}
	log.Info("Approving a gardenlet's certificate")
	return reconcile.Result{}, r.decide(ctx, csr, certificatesv1.CertificateApproved, reasonApproved,
		"The author of the request may create certificatesigningrequests/seedclient.")
}

func decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 ||
		slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
		})
}

func (r *Reconciler) authorized(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (
	allowed bool, reason string, err error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: "seedclient", Verb: "create",
		},
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, "", fmt.Errorf("asking whether %s may create certificatesigningrequests/seedclient: %w", csr.Spec.Username, err)
	}
	return review.Status.Allowed, review.Status.Reason, nil
}

func (r *Reconciler) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	decision certificatesv1.RequestConditionType, reason, message string) error {
	now := metav1.NewTime(r.Clock.Now())
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: decision, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	})
	if err := r.Client.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("writing the decision on a gardenlet's certificate: %w", err)
	}
	return nil
}

// parse parses the X.509 request in a CertificateSigningRequest and checks that it is signed with its key.
func parse(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	request, err := bootstraprules.Parse(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

// seedOf returns the seed whose client certificate is requested, or the reason why the request is ignored.
func seedOf(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) (seed, why string) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return "", "it is for the signer " + csr.Spec.SignerName
	}
	seed, why = bootstraprules.SeedOf(request, csr.Spec.Usages)
	if why == "" && len(validation.IsDNS1123Subdomain(seed)) > 0 {
		return "", fmt.Sprintf("%q cannot be the name of a seed", seed)
	}
	return seed, why
}
