package shootstate

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

const (
	namespace  = "shoot--p--s"
	syncPeriod = 6 * time.Hour
)

var (
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key   = client.ObjectKey{Namespace: "garden-p", Name: "s"}
)

func newShoot(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       corev1beta1.ShootSpec{SeedName: ptr.To("seed")},
		Status: corev1beta1.ShootStatus{
			SeedName: ptr.To("seed"), TechnicalID: namespace, LastOperation: &corev1beta1.LastOperation{Type: t, State: state},
		},
	}
}

type world struct {
	*Reconciler
	t     *testing.T
	clock *clocktesting.FakeClock
}

func newWorld(t *testing.T, garden ...client.Object) *world {
	t.Helper()
	gardenTypes, seedTypes := runtime.NewScheme(), runtime.NewScheme()
	for _, err := range []error{
		corev1beta1.AddToScheme(gardenTypes), seedmanagementv1alpha1.AddToScheme(gardenTypes), corev1.AddToScheme(seedTypes),
		extensionsv1alpha1.AddToScheme(seedTypes),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	kept, other := &corev1.Secret{ObjectMeta: in("ca"), Data: map[string][]byte{"ca.key": []byte("k")}},
		&corev1.Secret{ObjectMeta: in("other")}
	kept.Labels = map[string]string{"persist": "true", "name": "ca"}
	infrastructure := &extensionsv1alpha1.Infrastructure{ObjectMeta: in("s")}
	infrastructure.Status.State = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
	osc := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: in("o"),
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeProvision}}
	osc.Status.Resources = []corev1beta1.NamedResourceReference{
		{Name: "r", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "other"}}}
	seed := fake.NewClientBuilder().WithScheme(seedTypes).WithObjects(
		kept, other, infrastructure, osc, &extensionsv1alpha1.Worker{ObjectMeta: in("s")}).Build()
	c := fake.NewClientBuilder().WithScheme(gardenTypes).WithObjects(garden...).Build()
	clock := clocktesting.NewFakeClock(start)
	return &world{&Reconciler{SyncPeriod: syncPeriod, Base: controllerutils.Base{
		GardenClient: c, GardenReader: c, SeedClient: seed, SeedReader: seed, Clock: clock, SeedName: "seed"}}, t, clock}
}

func (w *world) reconcile() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) state() *corev1beta1.ShootState {
	w.t.Helper()
	state := &corev1beta1.ShootState{}
	err := w.GardenClient.Get(w.t.Context(), key, state)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func TestWrites(t *testing.T) {
	machines := corev1beta1.GardenerResourceData{Name: "machine-state", Type: constants.DataTypeMachineState,
		Data: runtime.RawExtension{Raw: []byte(`{}`)}}
	before := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1beta1.ShootStateSpec{
			Gardener:   []corev1beta1.GardenerResourceData{machines},
			Extensions: []corev1beta1.ExtensionResourceState{{Kind: "Gone", Name: ptr.To("x")}},
		}}
	for name, objects := range map[string][]client.Object{"a new one": nil, "one that is there": {before}} {
		w := newWorld(t, append(objects, newShoot(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))...)
		wait := w.reconcile()
		if low, high := syncPeriod-15*time.Minute, syncPeriod+15*time.Minute; wait < low || wait > high {
			t.Errorf("%s: the next one after %s", name, wait)
		}
		spec := w.state().Spec
		if n := len(spec.Gardener); n != 1+len(objects) || spec.Gardener[0].Name != "ca" ||
			string(spec.Gardener[0].Data.Raw) != `{"data":{"ca.key":"aw=="}}` {
			t.Errorf("%s: secrets %v", name, spec.Gardener)
		}
		if e := spec.Extensions; len(e) != 2 || e[0].Kind != "Infrastructure" || string(e[0].State.Raw) != `{"network":"n"}` ||
			*e[1].Purpose != "provision" {
			t.Errorf("%s: extensions %+v", name, e)
		}
		if r := spec.Resources; len(r) != 1 || r[0].Kind != "Secret" || len(r[0].Data.Raw) == 0 {
			t.Errorf("%s: resources %+v", name, r)
		}
	}
}

func TestWritesWhenItIsTime(t *testing.T) {
	w := newWorld(t, newShoot(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateError))
	w.reconcile()
	first := w.state().ResourceVersion
	w.clock.Step(time.Hour)
	if wait := w.reconcile(); wait < 4*time.Hour || wait > 5*time.Hour || w.state().ResourceVersion != first {
		t.Errorf("after an hour: the next one after %s, version %s, first %s", wait, w.state().ResourceVersion, first)
	}
	w.clock.Step(5 * time.Hour)
	if w.reconcile(); w.state().ResourceVersion == first {
		t.Error("after six hours it was not written again")
	}
}

func TestLeavesAlone(t *testing.T) {
	moving := newShoot(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded)
	moving.Spec.SeedName = ptr.To("other")
	goes := newShoot(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded)
	goes.DeletionTimestamp, goes.Finalizers = ptr.To(metav1.NewTime(start)), []string{"x"}
	for name, objects := range map[string][]client.Object{
		"none":           nil,
		"being made":     {newShoot(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing)},
		"migrates":       {newShoot(corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateSucceeded)},
		"being restored": {newShoot(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateError)},
		"is to move":     {moving},
		"goes":           {goes},
		"on a ManagedSeed": {newShoot(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded),
			&seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed"}}},
	} {
		w := newWorld(t, objects...)
		if w.reconcile(); w.state() != nil {
			t.Errorf("%s: there is a ShootState", name)
		}
	}
}

// If the namespace has no secrets, the ShootState in the garden is the only copy of them and is not overwritten.
func TestNeverLosesSecrets(t *testing.T) {
	w := newWorld(t, newShoot(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded))
	w.reconcile()
	if err := w.SeedClient.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(12 * time.Hour)
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil || len(w.state().Spec.Gardener) != 1 {
		t.Errorf("error %v, state %+v", err, w.state().Spec)
	}
}
