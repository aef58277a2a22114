package gardenlet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestLiveReader checks that an object is read only once access to it is allowed, and is not checked again after that.
func TestLiveReader(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := gardenTypes.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "garden", Name: "s"}
	asked, read, heardAfter := 0, 0, 3
	refused := errors.New("refused")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	garden := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
				if !ok {
					t.Fatalf("a %T is created", obj)
				}
				if a := *review.Spec.ResourceAttributes; a != (authorizationv1.ResourceAttributes{
					Verb: "get", Version: "v1", Resource: "secrets", Namespace: "garden", Name: "s"}) {
					t.Errorf("asked for %+v", a)
				}
				asked++
				review.Status.Allowed = asked >= heardAfter
				return nil
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if read++; asked < heardAfter {
					return refused
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}).Build()
	r := newLiveReader(garden, garden)
	for range 3 {
		if err := r.Get(t.Context(), key, &corev1.Secret{}); err != nil {
			t.Fatal(err)
		}
	}
	if asked != heardAfter || read != 3 {
		t.Errorf("asked %d times whether it may, read %d times", asked, read)
	}

	testOfOneSeed(t, scheme)

	// A forbidden object is read anyway after the timeout, so that the API server gives the reason, and is checked again.
	r = newLiveReader(garden, garden)
	r.limit = 0
	asked, read, heardAfter = 0, 0, 100
	for range 2 {
		if err := r.Get(t.Context(), key, &corev1.Secret{}); !errors.Is(err, refused) {
			t.Errorf("the error is %v", err)
		}
	}
	if asked != 2 || read != 2 {
		t.Errorf("asked %d times whether it may, read %d times", asked, read)
	}
}

// testOfOneSeed reads Shoots of this seed and of others: what is not of this seed is not there, and no request is refused.
func testOfOneSeed(t *testing.T, scheme *runtime.Scheme) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Shoot"), meta.RESTScopeNamespace)
	shoot := func(name string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}}
	}
	forbidden := 0
	allowed := func(name string) bool { return name == "own" || name == "new" }
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot("own"), shoot("new"), shoot("other"), shoot("moved")).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if !allowed(key.Name) {
					if forbidden++; ctx.Value(ofOneSeed{}) == nil {
						t.Errorf("%s: the request is not for an object of one seed", key.Name)
					}
					return apierrors.NewNotFound(schema.GroupResource{Resource: "shoots"}, key.Name) // see TestNotOfSeed
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}).Build()
	cache := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(shoot("own"), shoot("moved")).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				review := obj.(*authorizationv1.SelfSubjectAccessReview)
				review.Status.Allowed = allowed(review.Spec.ResourceAttributes.Name) || review.Spec.ResourceAttributes.Name == "moved"
				return nil
			},
		}).Build()
	r := newLiveReader(live, cache)
	for name, want := range map[string]struct{ found, asks bool }{
		"own": {true, false}, "new": {true, false}, "other": {false, false}, "gone": {false, false},
		"moved": {false, true}, // at this moment
	} {
		forbidden = 0
		err := r.Get(t.Context(), client.ObjectKey{Namespace: "garden-dev", Name: name}, &corev1beta1.Shoot{})
		if (err == nil) != want.found || err != nil && !apierrors.IsNotFound(err) || (forbidden > 0) != want.asks {
			t.Errorf("%s: %v, %d requests are refused", name, err, forbidden)
		}
	}
}

func TestNotOfSeed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &notOfSeed{next} })
	kube := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	if err := kube.Get().AbsPath("/x").Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("any request: %v", err)
	}
	if err := kube.Get().AbsPath("/x").Do(context.WithValue(t.Context(), ofOneSeed{}, true)).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("a request for an object of one seed: %v", err)
	}
}
