package seedcare

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/manifests"
)

const health = corev1beta1.SeedSystemComponentsHealthy

type world struct {
	*testing.T
	garden, seed client.Client
	clock        *clocktesting.FakeClock
	reconciler   *Reconciler
	// Results of the fake server.
	ready, discovery error
	missing          []string
}

func (w *world) Ready(context.Context) error { return w.ready }

func (w *world) Resources(context.Context) (sets.Set[string], error) {
	return w.reconciler.expected.resources.Clone().Delete(w.missing...).Insert("deployments.apps"), w.discovery
}

// newWorld returns a world with a healthy seed, whose Seed has only a condition of another controller.
func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1beta1.SeedStatus{
		Conditions: []conditions.Condition{{Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse, Reason: "Theirs"}},
	}}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).WithStatusSubresource(seed).Build()
	w.seed = fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}).Build()
	w.reconciler = &Reconciler{
		Base: controllerutils.Base{GardenClient: w.garden, SeedReader: w.seed, Clock: w.clock, SeedName: "a"}, Server: w}
	return w
}

func (w *world) read() *corev1beta1.Seed {
	w.Helper()
	seed := &corev1beta1.Seed{}
	if err := w.garden.Get(w.Context(), client.ObjectKey{Name: "a"}, seed); err != nil {
		w.Fatal(err)
	}
	return seed
}

// checkComponents reconciles once, and returns the resulting condition.
func (w *world) checkComponents() conditions.Condition {
	w.Helper()
	result, err := w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if err != nil || result.RequeueAfter != 30*time.Second {
		w.Fatalf("reconciling: %+v, %v", result, err)
	}
	all := w.read().Status.Conditions
	if theirs := conditions.Find(all, corev1beta1.SeedExtensionsReady); theirs.Reason != "Theirs" {
		w.Errorf("another controller's condition is now %+v", theirs)
	}
	return conditions.Find(all, health)
}

func (w *world) expect(status corev1beta1.ConditionStatus, reason, message string) {
	w.Helper()
	if c := w.checkComponents(); c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		w.Errorf("the condition is %s (%s: %s), want %s (%s: %s)", c.Status, c.Reason, c.Message, status, reason, message)
	}
}

func managedResource(name string, class *string, conditions ...conditions.Condition) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: class},
		Status:     resourcesv1alpha1.ManagedResourceStatus{Conditions: conditions},
	}
}

func TestWhatIsLookedAt(t *testing.T) {
	failing := conditions.Condition{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionFalse,
		Reason: "Broken", Message: "no pods"}
	for name, test := range map[string]struct {
		change          func(*world) error
		status          corev1beta1.ConditionStatus
		reason, message string
	}{
		"all is well": {func(*world) error { return nil }, corev1beta1.ConditionTrue, "SystemComponentsRunning", "healthy"},
		"the server is not": {func(w *world) error { w.ready = errors.New("503: etcd"); return nil },
			corev1beta1.ConditionFalse, "APIServerNotReady", "503: etcd"},
		"a resource is missing": {func(w *world) error { w.missing = []string{"workers.extensions.gardener.cloud"}; return nil },
			corev1beta1.ConditionFalse, "CustomResourcesMissing", ": workers.extensions.gardener.cloud."},
		"discovery fails": {func(w *world) error { w.discovery = errors.New("no idea"); return nil },
			corev1beta1.ConditionUnknown, "ConditionCheckError", "no idea"},
		"the namespace is gone": {func(w *world) error {
			return w.seed.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
		}, corev1beta1.ConditionFalse, "NamespaceMissing", "garden"},
		"a resource is ill": {func(w *world) error { return w.seed.Create(w.Context(), managedResource("x", ptr.To("seed"), failing)) },
			corev1beta1.ConditionFalse, "Broken", "garden/x is not well: no pods"},
		"not the seed's own": {func(w *world) error { return w.seed.Create(w.Context(), managedResource("x", nil, failing)) },
			corev1beta1.ConditionTrue, "SystemComponentsRunning", ""},
		"a resource says naught": {func(w *world) error { return w.seed.Create(w.Context(), managedResource("x", ptr.To("seed"))) },
			corev1beta1.ConditionTrue, "SystemComponentsRunning", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := test.change(w); err != nil {
				t.Fatal(err)
			}
			w.expect(test.status, test.reason, test.message)
		})
	}
}

func TestPatience(t *testing.T) {
	w := newWorld(t)
	w.expect(corev1beta1.ConditionTrue, "SystemComponentsRunning", "")
	w.ready = errors.New("not yet")
	w.expect(corev1beta1.ConditionProgressing, "APIServerNotReady", "not yet")
	w.clock.Step(time.Minute)
	w.expect(corev1beta1.ConditionProgressing, "APIServerNotReady", "not yet")
	w.clock.Step(time.Second)
	w.expect(corev1beta1.ConditionFalse, "APIServerNotReady", "not yet")
	w.ready = nil
	w.expect(corev1beta1.ConditionTrue, "SystemComponentsRunning", "")
}

func TestNothingNewIsNotWritten(t *testing.T) {
	w := newWorld(t)
	w.checkComponents()
	before := w.read().ResourceVersion
	w.clock.Step(time.Hour)
	w.checkComponents()
	if after := w.read().ResourceVersion; after != before {
		t.Errorf("written: %s, then %s", before, after)
	}
}

func TestEmergencyStop(t *testing.T) {
	w := newWorld(t)
	for _, stop := range []string{"true", "false"} {
		seed := w.read()
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, "shoot.gardener.cloud/emergency-stop-reconciliations", stop)
		if err := w.garden.Update(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		w.checkComponents()
		c := conditions.Find(w.read().Status.Conditions, "EmergencyStopShootReconciliations")
		if got := c.Status == corev1beta1.ConditionTrue; got != (stop == "true") {
			t.Errorf("%s: the condition is %+v", stop, c)
		}
	}
}

func TestIgnoredManagedResources(t *testing.T) {
	w := newWorld(t)
	ignored := managedResource("x", ptr.To("seed"))
	ignored.Namespace, ignored.Annotations = "istio-system", map[string]string{resourcesv1alpha1.Ignore: "true"}
	if err := w.seed.Create(t.Context(), ignored); err != nil {
		t.Fatal(err)
	}
	w.checkComponents()
	all := w.read().Status.Constraints
	if c := conditions.Find(all, "ManagedResourcesHonored"); c.Status != corev1beta1.ConditionFalse || !strings.HasSuffix(c.Message, ": x") {
		t.Errorf("the constraint is %+v", c)
	}
	ignored.Annotations[resourcesv1alpha1.Ignore] = "false"
	if err := w.seed.Update(t.Context(), ignored); err != nil {
		t.Fatal(err)
	}
	w.checkComponents()
	if all := w.read().Status.Constraints; len(all) > 0 {
		t.Errorf("no ManagedResource is ignored, and there are the constraints %+v", all)
	}
}

func TestSeedThatIsGone(t *testing.T) {
	w := newWorld(t)
	result, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "b"}})
	if err != nil || result != (reconcile.Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
}

// loadExpected derives the names of the definitions from the names of their files.
func TestExpected(t *testing.T) {
	r := &Reconciler{}
	if err := r.loadExpected(); err != nil {
		t.Fatal(err)
	}
	crds, err := manifest.LoadFS(manifests.Seed, "seed/crds")
	if err != nil {
		t.Fatal(err)
	}
	want := sets.New[string]()
	for _, crd := range crds {
		want.Insert(crd.GetName())
	}
	if !r.expected.resources.Equal(want) || want.Len() < 10 {
		t.Errorf("expected %v, want %v", sets.List(r.expected.resources), sets.List(want))
	}
	if len(r.expected.namespaces) == 0 || r.expected.namespaces[0] != "garden" {
		t.Errorf("expected the namespaces %v", r.expected.namespaces)
	}
}

func TestChanged(t *testing.T) {
	seed := func(state corev1beta1.LastOperationState, kind corev1beta1.LastOperationType, stop string) *corev1beta1.Seed {
		return &corev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": stop}},
			Status:     corev1beta1.SeedStatus{LastOperation: &corev1beta1.LastOperation{State: state, Type: kind}},
		}
	}
	const done, working = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateProcessing
	const reconciles, deletes = corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationTypeDelete
	for name, test := range map[string]struct {
		before, after *corev1beta1.Seed
		want          bool
	}{
		"has just been reconciled": {seed(working, reconciles, ""), seed(done, reconciles, ""), true},
		"was the first time":       {&corev1beta1.Seed{}, seed(done, reconciles, ""), true},
		"is reconciled":            {seed(done, reconciles, ""), seed(working, reconciles, ""), false},
		"was before":               {seed(done, reconciles, ""), seed(done, reconciles, ""), false},
		"is deleted":               {seed(working, deletes, ""), seed(done, deletes, ""), false},
		"is stopped":               {seed(done, reconciles, ""), seed(done, reconciles, "true"), true},
	} {
		if got := changed().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !changed().Create(event.CreateEvent{}) || changed().Delete(event.DeleteEvent{}) {
		t.Error("its coming counts, its going does not")
	}
}
