package seedlease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

type world struct {
	*testing.T
	garden     client.Client
	clock      *clocktesting.FakeClock
	reconciler *Reconciler
	unhealthy  error
	calls      []string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1beta1.Seed{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*coordinationv1.Lease); ok {
					w.calls = append(w.calls, "get")
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				w.calls = append(w.calls, "create")
				return c.Create(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				w.calls = append(w.calls, "patch")
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.reconciler = &Reconciler{
		Base:  controllerutils.Base{GardenClient: w.garden, Clock: w.clock, SeedName: "a"},
		Check: func(context.Context) error { return w.unhealthy }, Resync: 2 * time.Second,
	}
	return w
}

func (w *world) run() (reconcile.Result, error) {
	return w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "a"}})
}

// renews reconciles once, and checks the requests and the resulting Lease.
func (w *world) renews(requests string) {
	w.Helper()
	w.calls = nil
	result, err := w.run()
	if err != nil || result.RequeueAfter != 2*time.Second {
		w.Fatalf("reconciling: %+v, %v", result, err)
	}
	if got := strings.Join(w.calls, " "); got != requests {
		w.Errorf("asked the garden for %q, want %q", got, requests)
	}
	lease := &coordinationv1.Lease{}
	if err := w.garden.Get(w.Context(), client.ObjectKey{Namespace: "gardener-system-seed-lease", Name: "a"}, lease); err != nil {
		w.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Seed", Name: "a", UID: "uid"}
	if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0] != owner {
		w.Errorf("the owners are %+v", lease.OwnerReferences)
	}
	if s := lease.Spec; ptr.Deref(s.HolderIdentity, "") != "a" || ptr.Deref(s.LeaseDurationSeconds, 0) != 2 ||
		!s.RenewTime.Time.Equal(w.clock.Now()) {
		w.Errorf("the Lease is %+v at %s", s, w.clock.Now())
	}
}

func (w *world) ready() conditions.Condition {
	w.Helper()
	seed := &corev1beta1.Seed{}
	if err := w.garden.Get(w.Context(), client.ObjectKey{Name: "a"}, seed); err != nil {
		w.Fatal(err)
	}
	return conditions.Find(seed.Status.Conditions, corev1beta1.GardenletReady)
}

func newSeed() *corev1beta1.Seed {
	return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid"}}
}

func TestRenewal(t *testing.T) {
	w := newWorld(t, newSeed())
	w.renews("create")
	if c := w.ready(); c.Status != corev1beta1.ConditionTrue || c.Reason != "GardenletReady" ||
		c.Message != "Gardenlet is posting ready status." {
		t.Errorf("the condition is %+v", c)
	}
	since := w.ready().LastUpdateTime
	w.clock.Step(2 * time.Second)
	w.renews("patch")
	if now := w.ready().LastUpdateTime; !now.Equal(&since) {
		t.Error("the condition was written although nothing was new")
	}
}

func TestRenewalOfALeaseFromBefore(t *testing.T) {
	w := newWorld(t, newSeed(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: "a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Seed", Name: "a", UID: "of before"}}},
	})
	w.renews("create patch")
	w.renews("patch")
}

func TestDeletedLease(t *testing.T) {
	w := newWorld(t, newSeed())
	w.renews("create")
	if err := w.garden.Delete(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	w.renews("patch create")
}

func TestUnreachableSeed(t *testing.T) {
	seed := newSeed()
	seed.Status.Conditions = []conditions.Condition{{Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionUnknown,
		Reason: "NotYet"}, {Type: "Theirs", Status: corev1beta1.ConditionFalse}}
	w := newWorld(t, seed)
	w.unhealthy = errors.New("no route to host")
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "no route to host") || !strings.Contains(err.Error(), "seed a") {
		t.Fatalf("the error is %v", err)
	}
	err := w.garden.Get(t.Context(), client.ObjectKey{Namespace: "gardener-system-seed-lease", Name: "a"}, &coordinationv1.Lease{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("the Lease was renewed: %v", err)
	}
	if c := w.ready(); c.Status != corev1beta1.ConditionUnknown {
		t.Errorf("the condition is %+v", c)
	}
	w.unhealthy = nil
	w.renews("create")
	if c := w.ready(); c.Status != corev1beta1.ConditionTrue {
		t.Errorf("the condition has not recovered: %+v", c)
	}
}

func TestSeedThatIsGone(t *testing.T) {
	w := newWorld(t)
	if result, err := w.run(); err != nil || result != (reconcile.Result{}) || len(w.calls) > 0 {
		t.Errorf("got %+v, %v, with %v", result, err, w.calls)
	}
}

func TestWhichEventsCount(t *testing.T) {
	seed := newSeed()
	p := component.Creations()
	if !p.Create(event.CreateEvent{Object: seed}) || p.Update(event.UpdateEvent{ObjectOld: seed, ObjectNew: seed}) ||
		p.Delete(event.DeleteEvent{Object: seed}) {
		t.Error("only its coming counts")
	}
	r := &Reconciler{Base: controllerutils.Base{SeedName: "a"}}
	if !r.Own(seed) || r.Own(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "b"}}) {
		t.Error("only its own Seed counts")
	}
}
