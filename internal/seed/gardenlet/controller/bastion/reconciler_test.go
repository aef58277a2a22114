package bastion

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

const (
	namespace = "shoot--dev--y"
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbGSz9p0pPsEoWLmKQrOqkYkzzHVWfRg/sfkoh8jy7D"
)

var key = client.ObjectKey{Namespace: "garden-dev", Name: "b"}

type world struct {
	*testing.T
	garden, seed client.Client
	clock        *clocktesting.FakeClock
	r            *Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	gardenScheme, seedScheme := runtime.NewScheme(), runtime.NewScheme()
	add := runtime.NewSchemeBuilder(corev1beta1.AddToScheme, operationsv1alpha1.AddToScheme)
	if err := add.AddToScheme(gardenScheme); err != nil {
		t.Fatal(err)
	}
	if err := extensionsv1alpha1.AddToScheme(seedScheme); err != nil {
		t.Fatal(err)
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "y"},
		Spec:   corev1beta1.ShootSpec{SeedName: ptr.To("a")},
		Status: corev1beta1.ShootStatus{SeedName: ptr.To("a"), TechnicalID: namespace}}
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "y"}, SeedName: ptr.To("a"),
			ProviderType: ptr.To("local"),
			SSHPublicKey: publicKey + " me@host",
			Ingress:      []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "127.0.0.0/8"}}}}}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)),
		garden: fake.NewClientBuilder().WithScheme(gardenScheme).WithStatusSubresource(bastion, shoot).WithObjects(bastion, shoot).Build(),
		seed:   fake.NewClientBuilder().WithScheme(seedScheme).WithStatusSubresource(&extensionsv1alpha1.Bastion{}).Build()}
	w.r = &Reconciler{Base: controllerutils.Base{
		GardenClient: w.garden, GardenReader: w.garden, SeedClient: w.seed, Clock: w.clock, SeedName: "a"}}
	return w
}

func (w *world) reconcile() {
	w.Helper()
	if _, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) bastion() *operationsv1alpha1.Bastion {
	w.Helper()
	bastion := &operationsv1alpha1.Bastion{}
	w.must(w.garden.Get(w.Context(), key, bastion))
	return bastion
}

// extension returns the Bastion of the seed, nil if there is none.
func (w *world) extension() *extensionsv1alpha1.Bastion {
	w.Helper()
	extension := &extensionsv1alpha1.Bastion{}
	err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: key.Name}, extension)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return extension
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// provide simulates the provider: it completes the requested operation of a Bastion.
func (w *world) provide(change func(*extensionsv1alpha1.Bastion)) {
	w.Helper()
	extension := w.extension()
	delete(extension.Annotations, "gardener.cloud/operation")
	extension.Annotations[operation.AnnotationSSHPort] = "2222"
	extension.Finalizers = []string{"provider"}
	w.must(w.seed.Update(w.Context(), extension))
	extension.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Succeeded",
		LastUpdateTime: metav1.NewTime(w.clock.Now())}
	extension.Status.LastError = nil
	extension.Status.Ingress = &corev1.LoadBalancerIngress{IP: "127.0.0.1"}
	if change != nil {
		change(extension)
	}
	w.must(w.seed.Status().Update(w.Context(), extension))
}

func (w *world) change(mutate func(*operationsv1alpha1.Bastion)) {
	w.Helper()
	bastion := w.bastion()
	mutate(bastion)
	w.must(w.garden.Update(w.Context(), bastion))
}

func (w *world) expect(status corev1beta1.ConditionStatus, reason, says string) *operationsv1alpha1.Bastion {
	w.Helper()
	bastion := w.bastion()
	if c := conditions.Find(bastion.Status.Conditions, operationsv1alpha1.BastionReady); c.Status != status ||
		c.Reason != reason || !strings.Contains(c.Message, says) {
		w.Fatalf("%+v, want %s, %s, %q", c, status, reason, says)
	}
	return bastion
}

func ready(w *world) *operationsv1alpha1.Bastion {
	w.Helper()
	w.reconcile()
	w.provide(nil)
	w.reconcile()
	return w.expect("True", "SuccessfullyReconciled", "")
}

func TestLife(t *testing.T) {
	w := newWorld(t)
	w.change(func(b *operationsv1alpha1.Bastion) { b.Annotations = map[string]string{"gardenlite.dev/delay": "1s"} })
	w.reconcile()
	extension := w.extension()
	if a := extension.Annotations; a["gardener.cloud/operation"] != "reconcile" || a["gardener.cloud/timestamp"] == "" ||
		a["gardenlite.dev/delay"] != "1s" {
		t.Errorf("annotations: %v", a)
	}
	if s := extension.Spec; s.Type != "local" || len(s.Ingress) != 1 || s.Ingress[0].IPBlock.CIDR != "127.0.0.0/8" ||
		!strings.Contains(string(s.UserData), publicKey) {
		t.Errorf("%+v", s)
	}
	if b := w.expect("Unknown", "", ""); len(b.Finalizers) != 1 || b.Finalizers[0] != "gardener" {
		t.Errorf("finalizers: %v", b.Finalizers)
	}
	w.provide(nil)
	w.reconcile()
	if b := w.expect("True", "SuccessfullyReconciled", ""); b.Status.Ingress.IP != "127.0.0.1" ||
		b.Annotations[operation.AnnotationSSHPort] != "2222" {
		t.Errorf("%+v %v", b.Status, b.Annotations)
	}
	if requests := inGarden(t.Context(), w.extension()); len(requests) != 1 || requests[0].NamespacedName != key {
		t.Errorf("the seed's Bastion is for %v", requests)
	}

	// The ingress changes: the extension is requested to reconcile, and the status stays until that is done.
	w.change(func(b *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "127.0.0.1/32" })
	w.reconcile()
	if e := w.extension(); e.Spec.Ingress[0].IPBlock.CIDR != "127.0.0.1/32" || e.Annotations["gardener.cloud/operation"] != "reconcile" {
		t.Errorf("%+v", e)
	}
	// The address of the machine changes: this is reported without an operation.
	w.provide(func(e *extensionsv1alpha1.Bastion) { e.Status.Ingress.IP = "127.0.0.9" })
	w.reconcile()
	if b := w.bastion(); b.Status.Ingress.IP != "127.0.0.9" {
		t.Errorf("%+v", b.Status)
	}

	w.must(w.garden.Delete(t.Context(), w.bastion()))
	w.reconcile()
	w.expect("False", "DeletionInProgress", "The bastion is being deleted.")
	extension = w.extension()
	if extension == nil || extension.DeletionTimestamp == nil {
		t.Fatal("the seed's Bastion is not being deleted")
	}
	w.change(func(b *operationsv1alpha1.Bastion) {
		b.Annotations["confirmation.gardener.cloud/force-deletion"] = "true"
	})
	w.reconcile()
	extension = w.extension()
	if extension.Annotations["confirmation.gardener.cloud/force-deletion"] != "true" {
		t.Errorf("force was not passed on: %v", extension.Annotations)
	}
	extension.Finalizers = nil
	w.must(w.seed.Update(t.Context(), extension))
	w.reconcile()
	if err := w.garden.Get(t.Context(), key, &operationsv1alpha1.Bastion{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Bastion is not gone: %v", err)
	}
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*extensionsv1alpha1.Bastion)
		reason, says string
		asked        bool
	}{
		"error": {func(e *extensionsv1alpha1.Bastion) {
			e.Status.LastOperation.State = "Error"
			e.Status.LastError = &corev1beta1.LastError{Description: "no secret", Codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}}
		}, "FailedReconciling", "Error while waiting for Bastion shoot--dev--y/b to become ready: error during reconciliation: no secret", false},
		"failed": {func(e *extensionsv1alpha1.Bastion) { e.Status.LastOperation.State = "Failed" }, "FailedReconciling",
			"not Succeeded but Failed", true},
		"not ready": {func(e *extensionsv1alpha1.Bastion) {
			e.Status.Conditions = []corev1beta1.Condition{{Type: "BastionReady", Status: "False", Reason: "Down", Message: "it does not answer"}}
		}, "Down", "it does not answer", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ready(w)
			w.provide(test.change)
			w.reconcile()
			b := w.expect("False", test.reason, test.says)
			if codes := b.Status.Conditions[0].Codes; (len(codes) == 1) != (name == "error") {
				t.Errorf("codes: %v", codes)
			}
			if asked := w.extension().Annotations["gardener.cloud/operation"] == "reconcile"; asked != test.asked {
				t.Errorf("the provider was asked again: %v", asked)
			}
			w.provide(nil)
			w.reconcile()
			if name != "not ready" {
				w.expect("True", "SuccessfullyReconciled", "")
			}
		})
	}
}

func TestShootThatIsElsewhere(t *testing.T) {
	for name, change := range map[string]func(*corev1beta1.Shoot, client.Client, context.Context) error{
		"missing": func(s *corev1beta1.Shoot, c client.Client, ctx context.Context) error { return c.Delete(ctx, s) },
		"moved": func(s *corev1beta1.Shoot, c client.Client, ctx context.Context) error {
			s.Spec.SeedName = ptr.To("b")
			return c.Update(ctx, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ready(w)
			shoot := &corev1beta1.Shoot{}
			w.must(w.garden.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "y"}, shoot))
			w.must(change(shoot, w.garden, t.Context()))
			w.reconcile()
			w.expect("False", "FailedReconciling", "not on the seed a")
			extension := w.extension()
			if extension.DeletionTimestamp == nil {
				t.Fatal("the seed's Bastion stays")
			}
			extension.Finalizers = nil
			w.must(w.seed.Update(t.Context(), extension))
			w.reconcile()
			if w.extension() != nil {
				t.Error("the seed's Bastion came back")
			}
			w.must(w.garden.Delete(t.Context(), w.bastion()))
			w.reconcile()
			if err := w.garden.Get(t.Context(), key, &operationsv1alpha1.Bastion{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Bastion is not gone: %v", err)
			}
		})
	}
}

// TestShootThatArrives checks that a Bastion whose Shoot is being migrated to this seed reports what it waits for.
func TestShootThatArrives(t *testing.T) {
	w := newWorld(t)
	shoot := &corev1beta1.Shoot{}
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "y"}, shoot))
	shoot.Status.SeedName = ptr.To("b")
	w.must(w.garden.Status().Update(t.Context(), shoot))
	w.reconcile()
	w.expect("False", "FailedReconciling", "the Shoot y is being migrated from the seed b")
	if w.extension() != nil {
		t.Error("a Bastion is made in the seed before the Shoot has arrived")
	}
	shoot.Status.SeedName = ptr.To("a")
	w.must(w.garden.Status().Update(t.Context(), shoot))
	ready(w)
}

// TestForce checks that an extension which does not answer a forced deletion blocks it only until the extension's time
// has passed.
func TestForce(t *testing.T) {
	w := newWorld(t)
	ready(w)
	w.must(w.garden.Delete(t.Context(), w.bastion()))
	w.reconcile()
	w.clock.Step(time.Hour)
	w.reconcile()
	w.expect("False", "DeletionInProgress", "")
	w.change(func(b *operationsv1alpha1.Bastion) {
		b.Annotations["confirmation.gardener.cloud/force-deletion"] = "true"
	})
	for range 2 {
		w.reconcile()
		if w.extension() == nil {
			t.Fatal("the extension is not given its time")
		}
		w.clock.Step(operation.ForceGrace / 2)
	}
	w.reconcile()
	if err := w.garden.Get(t.Context(), key, &operationsv1alpha1.Bastion{}); w.extension() != nil || !apierrors.IsNotFound(err) {
		t.Errorf("left: %v, %v", w.extension(), err)
	}
}

func TestAnotherKeyReplacesTheMachine(t *testing.T) {
	w := newWorld(t)
	ready(w)
	other := strings.Replace(publicKey, "jy7D", "jy7E", 1)
	w.change(func(b *operationsv1alpha1.Bastion) { b.Spec.SSHPublicKey = other })
	w.reconcile()
	extension := w.extension()
	if extension.DeletionTimestamp == nil {
		t.Fatal("the machine with the other key stays")
	}
	w.expect("False", "FailedReconciling", "replaced")
	extension.Finalizers = nil
	w.must(w.seed.Update(t.Context(), extension))
	w.reconcile()
	if e := w.extension(); e == nil || !strings.Contains(string(e.Spec.UserData), other) {
		t.Errorf("%+v", e)
	}
}

func TestOrphanGoes(t *testing.T) {
	w := newWorld(t)
	ready(w)
	bastion := w.bastion()
	bastion.Finalizers = nil
	w.must(w.garden.Update(t.Context(), bastion))
	w.must(w.garden.Delete(t.Context(), bastion))
	w.reconcile()
	if e := w.extension(); e.DeletionTimestamp == nil {
		t.Error("a Bastion stays in the seed that the garden does not have")
	}
}

func TestUserData(t *testing.T) {
	for name, test := range map[string]struct {
		key string
		ok  bool
	}{
		"plain":   {publicKey, true},
		"comment": {publicKey + ` "; rm -rf / $(id)`, true},
		"options": {`command="id" ` + publicKey, false},
		"two":     {publicKey + "\n" + publicKey, false},
		"no key":  {"hello", false},
		"empty":   {"", false},
	} {
		data, err := userData(test.key)
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
		if test.ok && (!strings.Contains(string(data), `echo "`+publicKey+`" > /home/gardener/.ssh/authorized_keys`) ||
			strings.Contains(string(data), "rm -rf")) {
			t.Errorf("%s: %s", name, data)
		}
	}
}

func TestWhatIsLookedAt(t *testing.T) {
	before := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{"a": "b"}}}
	for name, test := range map[string]struct {
		change func(*operationsv1alpha1.Bastion)
		want   bool
	}{
		"heartbeat":  {func(b *operationsv1alpha1.Bastion) { b.Status.LastHeartbeatTimestamp = ptr.To(metav1.Now()) }, false},
		"ingress":    {func(b *operationsv1alpha1.Bastion) { b.Generation = 2 }, true},
		"annotation": {func(b *operationsv1alpha1.Bastion) { b.Annotations["a"] = "c" }, true},
		"deletion":   {func(b *operationsv1alpha1.Bastion) { b.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	} {
		after := before.DeepCopy()
		after.Annotations = maps.Clone(before.Annotations)
		test.change(after)
		if got := changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
