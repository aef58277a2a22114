package gardenlet

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
