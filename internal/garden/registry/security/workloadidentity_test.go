package security

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestSubject(t *testing.T) {
	def := workloadIdentities()
	w := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "garden-dev", UID: "u"}}
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "gardener.cloud:workloadidentity:garden-dev:w:u" {
		t.Errorf("subject %s", w.Status.Sub)
	}
	w.Status.Sub = "own" // which validation refuses, so that nobody believes it was taken
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "own" {
		t.Errorf("subject %s", w.Status.Sub)
	}
}

// TestNames: what comes without a name gets one, and an identity a UID with it.
func TestNames(t *testing.T) {
	w := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	workloadIdentities().PrepareForCreate(t.Context(), w)
	b := &gardensecurity.CredentialsBinding{}
	credentialsBindings().PrepareForCreate(t.Context(), b)
	if !strings.HasPrefix(w.Name, "w-") || w.UID == "" || !strings.HasSuffix(w.Status.Sub, ":"+w.Name+":"+string(w.UID)) || b.Name == "" {
		t.Errorf("identity %+v, binding %+v", w, b)
	}
}

type identities map[string]*gardensecurity.WorkloadIdentity

func (i identities) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if w, ok := i[name]; ok {
		return w, nil
	}
	return nil, apierrors.NewNotFound(gardensecurity.Resource("workloadidentities"), name)
}

func TestTokenRequests(t *testing.T) {
	rest := newTokenREST(identities{"w": {}})
	ctx := genericapirequest.WithNamespace(t.Context(), "garden-dev")
	for _, test := range []struct {
		identity, name, namespace string
		seconds                   int64
		code                      int32
	}{
		{"w", "", "", 600, http.StatusNotImplemented},
		{"w", "w", "garden-dev", 600, http.StatusNotImplemented},
		{"w", "", "", 1, http.StatusUnprocessableEntity},
		{"w", "x", "", 600, http.StatusUnprocessableEntity},
		{"w", "", "garden", 600, http.StatusUnprocessableEntity},
		{"x", "", "", 1, http.StatusNotFound},
	} {
		request := &gardensecurity.TokenRequest{ObjectMeta: metav1.ObjectMeta{Name: test.name, Namespace: test.namespace}, Spec: gardensecurity.TokenRequestSpec{ExpirationSeconds: test.seconds}}
		_, err := rest.Create(ctx, test.identity, request, nil, &metav1.CreateOptions{})
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != test.code {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
