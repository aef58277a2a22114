package csrapprover

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// attempt is a request for a certificate.
type attempt struct {
	x509   x509.CertificateRequest
	csr    certificatesv1.CertificateSigningRequest
	token  *corev1.Secret
	denied bool // by RBAC
	gone   bool // the Seed local
}

// byToken returns a valid request by a bootstrap token for the seed local.
func byToken(changes ...func(*attempt)) *attempt {
	a := &attempt{
		x509: x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "gardener.cloud:system:seed:local", Organization: []string{"gardener.cloud:system:seeds"}}},
		csr: certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: "kubernetes.io/kube-apiserver-client", Username: "system:bootstrap:abcdef",
				Groups: []string{"system:bootstrappers", "system:authenticated"},
				Usages: []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
			}},
		token: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"},
			Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{
				"description": []byte(TokenDescription("local")), "expiration": []byte("2026-01-01T00:00:01Z"),
			}},
	}
	for _, change := range changes {
		change(a)
	}
	return a
}

func description(text string) func(*attempt) {
	return func(a *attempt) { a.token.Data["description"] = []byte(text) }
}

func expiration(text string) func(*attempt) {
	return func(a *attempt) { a.token.Data["expiration"] = []byte(text) }
}

func as(user string, groups ...string) func(*attempt) {
	return func(a *attempt) { a.csr.Spec.Username, a.csr.Spec.Groups, a.token = user, groups, nil }
}

func seed(name string) func(*attempt) {
	return func(a *attempt) { a.x509.Subject.CommonName = "gardener.cloud:system:seed:" + name }
}

// try reconciles the request and returns the decision ("" for none), its message, and the SubjectAccessReview that was
// created.
func (a *attempt) try(t *testing.T) (decision, message string, result reconcile.Result, asked *authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	if a.csr.Spec.Request == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &a.x509, key)
		if err != nil {
			t.Fatal(err)
		}
		a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	objects := []client.Object{&a.csr}
	if a.token != nil {
		objects = append(objects, a.token)
	}
	if !a.gone {
		objects = append(objects, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}})
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			review := obj.(*authorizationv1.SubjectAccessReview)
			review.Status.Allowed, asked = !a.denied, &review.Spec
			return nil
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, subresource string, obj client.Object,
			_ ...client.SubResourceUpdateOption) error {
			conditions := obj.(*certificatesv1.CertificateSigningRequest).Status.Conditions
			last := conditions[len(conditions)-1]
			if subresource != "approval" || last.Status != corev1.ConditionTrue || decision != "" {
				t.Errorf("%s: %+v", subresource, conditions)
			}
			decision, message = string(last.Type), last.Message
			return nil
		},
	}).Build()
	r := &Reconciler{Base: kit.Base{Client: c, Reader: c, Clock: testclock.NewFakePassiveClock(now)}}
	result, err := reconcile.AsReconciler(c, r).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "csr"}})
	if err != nil {
		t.Fatal(err)
	}
	return decision, message, result, asked
}

func TestApproves(t *testing.T) {
	for name, a := range map[string]*attempt{
		"token for the seed": byToken(),
		"token of a ManagedSeed": byToken(
			description("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/local.")),
		"token of a Gardenlet": byToken(
			description("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/local.")),
		"token before there is a Seed": byToken(func(a *attempt) { a.gone = true }),
		"token without expiration":     byToken(expiration("")),
		"ServiceAccount":               byToken(as("system:serviceaccount:garden:gardenlet-bootstrap-local", "system:serviceaccounts")),
		"its own renewal":              byToken(as("gardener.cloud:system:seed:local", "gardener.cloud:system:seeds")),
		"an operator":                  byToken(as("operator", "system:masters")),
	} {
		t.Run(name, func(t *testing.T) {
			decision, _, _, asked := a.try(t)
			if decision != "Approved" {
				t.Fatalf("decision %q", decision)
			}
			want := authorizationv1.ResourceAttributes{Group: "certificates.k8s.io", Resource: "certificatesigningrequests",
				Subresource: "seedclient", Verb: "create"}
			if *asked.ResourceAttributes != want || asked.User != a.csr.Spec.Username ||
				strings.Join(asked.Groups, ",") != strings.Join(a.csr.Spec.Groups, ",") {
				t.Errorf("asked %+v for %s", *asked.ResourceAttributes, asked.User)
			}
		})
	}
}

func TestDenies(t *testing.T) {
	for name, test := range map[string]struct {
		attempt *attempt
		message string
	}{
		"token of another seed": {byToken(seed("other")), `for seed "local", not "other"`},
		"ManagedSeed's of another": {byToken(description("A bootstrap token for the Gardenlet for " +
			"seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/other.")), `for seed "other"`},
		"ManagedSeed elsewhere": {byToken(description("A bootstrap token for the Gardenlet for " +
			"seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource mine/local.")), "says for no seed"},
		"token for nothing":             {byToken(description("")), "Token to be used by the gardenlet for Seed `local`."},
		"token for a shoot":             {byToken(description("Used for connecting the self-hosted Shoot garden/local")), "says for no seed"},
		"token that expires now":        {byToken(expiration("2026-01-01T00:00:00Z")), "expired"},
		"token whose expiration is odd": {byToken(expiration("tomorrow")), "expired"},
		"token that is gone":            {byToken(func(a *attempt) { a.token = nil }), "gone"},
		"secret that is no token":       {byToken(func(a *attempt) { a.token.Type = corev1.SecretTypeOpaque }), "gone"},
		"ServiceAccount of another":     {byToken(as("system:serviceaccount:garden:gardenlet-bootstrap-other")), `bootstraps seed "other"`},
		"gardenlet of another": {byToken(as("gardener.cloud:system:seed:other", "gardener.cloud:system:seeds")),
			"not the gardenlet of seed"},
		"gardenlet whose Seed was deleted": {byToken(as("gardener.cloud:system:seed:local", "gardener.cloud:system:seeds"),
			func(a *attempt) { a.gone = true }), "bootstrapped again"},
		"gardenlet of another, as before": {byToken(as("gardener.cloud:system:seed:local", "gardener.cloud:system:seeds"), seed("other")),
			"not the gardenlet of seed"},
	} {
		t.Run(name, func(t *testing.T) {
			decision, message, _, _ := test.attempt.try(t)
			if decision != "Denied" || !strings.Contains(message, test.message) {
				t.Errorf("decision %q: %s", decision, message)
			}
		})
	}
}

func TestWaitsForRBAC(t *testing.T) {
	decision, _, result, _ := byToken(func(a *attempt) { a.denied = true }).try(t)
	if decision != "" || result.RequeueAfter != retryUnauthorized {
		t.Errorf("decision %q, again after %s", decision, result.RequeueAfter)
	}
}

func TestLeavesAlone(t *testing.T) {
	condition := func(kind certificatesv1.RequestConditionType) func(*attempt) {
		return func(a *attempt) {
			a.csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind}}
		}
	}
	for name, change := range map[string]func(*attempt){
		"approved":            condition("Approved"),
		"denied":              condition("Denied"),
		"signed":              func(a *attempt) { a.csr.Status.Certificate = []byte("x") },
		"another signer":      func(a *attempt) { a.csr.Spec.SignerName = "kubernetes.io/kubelet-serving" },
		"another group":       func(a *attempt) { a.x509.Subject.Organization = []string{"system:nodes"} },
		"one group more":      func(a *attempt) { a.x509.Subject.Organization = append(a.x509.Subject.Organization, "system:masters") },
		"no group":            func(a *attempt) { a.x509.Subject.Organization = nil },
		"another name":        func(a *attempt) { a.x509.Subject.CommonName = "admin" },
		"no seed":             seed(""),
		"ambiguous":           seed("<ambiguous>"),
		"colons":              seed("a:b"),
		"DNS name":            func(a *attempt) { a.x509.DNSNames = []string{"a.example"} },
		"e-mail address":      func(a *attempt) { a.x509.EmailAddresses = []string{"a@example.com"} },
		"IP address":          func(a *attempt) { a.x509.IPAddresses = append(a.x509.IPAddresses, []byte{1, 2, 3, 4}) },
		"URI":                 func(a *attempt) { a.x509.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} },
		"one usage more":      func(a *attempt) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, "server auth") },
		"one usage less":      func(a *attempt) { a.csr.Spec.Usages = a.csr.Spec.Usages[:2] },
		"not a request":       func(a *attempt) { a.csr.Spec.Request = []byte("x") },
		"not a request in it": func(a *attempt) { a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"}) },
	} {
		t.Run(name, func(t *testing.T) {
			if decision, message, _, asked := byToken(change).try(t); decision != "" || asked != nil {
				t.Errorf("decision %q: %s", decision, message)
			}
		})
	}
}
