package registration

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// world is a garden that allows to read the namespace after a number of access reviews (allowed), and has the namespace
// after a number of reads (made).
type world struct {
	*testing.T
	client.Client
	registrar         *Registrar
	allowed, made     int
	asked, read       int
	readBeforeAllowed bool
	writes            []string
}

// hasty is a clock that jumps to the time of each waiter.
type hasty struct{ *clocktesting.FakeClock }

func (c hasty) After(d time.Duration) <-chan time.Time {
	c.SetTime(c.Now().Add(d))
	done := make(chan time.Time, 1)
	done <- c.Now()
	return done
}

func newWorld(t *testing.T, template *corev1beta1.SeedTemplate, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
				w.asked++
				review.Status.Allowed = w.asked > w.allowed && review.Spec.ResourceAttributes.Name == "seed-a" &&
					review.Spec.ResourceAttributes.Verb == "get"
				return nil
			}
			w.writes = append(w.writes, "create")
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes = append(w.writes, "patch")
			return c.Patch(ctx, obj, patch, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if namespace, ok := obj.(*corev1.Namespace); ok {
				w.readBeforeAllowed = w.readBeforeAllowed || w.asked <= w.allowed
				if w.read++; w.read > w.made {
					namespace.Name = key.Name
					return nil
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	w.registrar = &Registrar{GardenClient: w.Client, Template: template, Clock: hasty{clocktesting.NewFakeClock(time.Now())}}
	return w
}

func template() *corev1beta1.SeedTemplate {
	return &corev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"mine": "1"}, Annotations: map[string]string{"note": "new"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local", Region: "r"}},
	}
}

func (w *world) seed() *corev1beta1.Seed {
	w.Helper()
	seed := &corev1beta1.Seed{}
	if err := w.Get(w.Context(), client.ObjectKey{Name: "a"}, seed); err != nil {
		w.Fatal(err)
	}
	return seed
}

func TestNewSeed(t *testing.T) {
	w := newWorld(t, template())
	w.allowed, w.made = 2, 2
	if err := w.registrar.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.readBeforeAllowed || w.asked != 5 || w.read != 3 {
		t.Errorf("asked %d times, read %d times, before it was allowed: %v", w.asked, w.read, w.readBeforeAllowed)
	}
	seed := w.seed()
	if want := map[string]string{"gardener.cloud/role": "seed", "mine": "1"}; !maps.Equal(seed.Labels, want) {
		t.Errorf("the labels are %v", seed.Labels)
	}
	if seed.Annotations["note"] != "new" || seed.Spec.Provider.Type != "local" {
		t.Errorf("the Seed is %+v", seed)
	}
	w.writes = nil
	if err := w.registrar.Register(t.Context()); err != nil || len(w.writes) > 0 {
		t.Errorf("the second time wrote %v, %v", w.writes, err)
	}
}

func TestSeedFromBefore(t *testing.T) {
	domain := corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "example.org"}
	w := newWorld(t, template(), &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"gardener"}, Labels: map[string]string{"old": "1"},
			Annotations: map[string]string{"note": "old", "theirs": "1"}},
		Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local", Region: "old"},
			DNS: corev1beta1.SeedDNS{Internal: &domain, Defaults: []corev1beta1.SeedDNSProviderConfig{domain}}},
	})
	if err := w.registrar.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := w.seed()
	if want := map[string]string{"note": "new", "theirs": "1"}; !maps.Equal(seed.Annotations, want) {
		t.Errorf("the annotations are %v", seed.Annotations)
	}
	if seed.Labels["old"] != "" || seed.Labels["mine"] != "1" || len(seed.Finalizers) != 1 {
		t.Errorf("the Seed is %+v", seed.ObjectMeta)
	}
	if seed.Spec.Provider.Region != "r" || seed.Spec.DNS.Internal != nil || len(seed.Spec.DNS.Defaults) != 1 {
		t.Errorf("the specification is %+v", seed.Spec)
	}
	if strings.Join(w.writes, " ") != "patch" || w.asked != 1 {
		t.Errorf("wrote %v, asked %d times", w.writes, w.asked)
	}
}

func TestNamespaceThatDoesNotCome(t *testing.T) {
	w := newWorld(t, template())
	w.made = 1 << 30
	err := w.registrar.Register(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no namespace seed-a") || !strings.Contains(err.Error(), "controller-manager") {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	w.registrar.Clock = clocktesting.NewFakeClock(time.Now())
	if err := w.registrar.Register(ctx); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("the error is %v", err)
	}
}

func TestWithoutATemplate(t *testing.T) {
	for _, template := range []*corev1beta1.SeedTemplate{nil, {}} {
		if err := (&Registrar{Template: template}).Register(t.Context()); err == nil || !strings.Contains(err.Error(), "seedConfig") {
			t.Errorf("the error is %v", err)
		}
	}
}
