package managedseedset

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	seedconstants "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

// world is a garden with a set. The test simulates the gardenlet.
type world struct {
	kittest.Garden
	r      *Reconciler
	set    *seedmanagementv1alpha1.ManagedSeedSet
	events chan string
}

func newWorld(t *testing.T, replicas int32) *world {
	t.Helper()
	labels := map[string]string{"set": "s"}
	set := &seedmanagementv1alpha1.ManagedSeedSet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", UID: "1", Generation: 1}}
	set.Spec.Replicas, set.Spec.Selector.MatchLabels = &replicas, labels
	set.Spec.ShootTemplate.Labels, set.Spec.Template.Labels = labels, labels
	set.Spec.ShootTemplate.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("replica-name.example.org")}
	set.Spec.Template.Spec.Gardenlet.Config = runtime.RawExtension{
		Raw: []byte(`{"a":1,"seedConfig":{"spec":{"ingress":{"domain":"ingress.replica-name.example.org"}}}}`)}
	g, recorder := kittest.New(t, set), events.NewFakeRecorder(1000)
	return &world{g, &Reconciler{Base: kit.Base{Client: g, Reader: g, Clock: g.Clock, Recorder: recorder}}, set, recorder.Events}
}

func (w *world) step() {
	w.Helper()
	w.MustReconcile(reconcile.AsReconciler(w, w.r), w.set)
}

func (w *world) scale(replicas int32) {
	w.Helper()
	w.set.Spec.Replicas = &replicas
	w.Must(w.Update(w.Context(), w.set))
}

func (w *world) shoot(name string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	if !w.Exists(shoot) {
		return nil
	}
	return shoot
}

func (w *world) managedSeed(name string) *seedmanagementv1alpha1.ManagedSeed {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	if !w.Exists(managedSeed) {
		return nil
	}
	return managedSeed
}

// operate simulates the gardenlet: it sets the last operation of a Shoot.
func (w *world) operate(name string, kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) {
	w.Helper()
	shoot := w.shoot(name)
	shoot.Labels[constants.ShootStatus] = "healthy"
	delete(shoot.Annotations, constants.GardenerOperation)
	w.Must(w.Update(w.Context(), shoot))
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
	w.Must(w.Status().Update(w.Context(), shoot))
}

// register simulates the registration of a Shoot's ManagedSeed as a Seed that is ready.
func (w *world) register(name string) {
	w.Helper()
	managedSeed := w.managedSeed(name)
	managedSeed.Status.Conditions = []corev1beta1.Condition{{Type: seedmanagementv1alpha1.SeedRegistered, Status: "True"}}
	w.Must(w.Status().Update(w.Context(), managedSeed))
	w.Must(w.Create(w.Context(),
		&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1beta1.SeedStatus{Conditions: []corev1beta1.Condition{
			{Type: corev1beta1.GardenletReady, Status: "True"}, {Type: corev1beta1.SeedSystemComponentsHealthy, Status: "True"},
		}}}))
}

// wantPending checks the set's numbers of replicas, and its pending replica in the form "name reason".
func (w *world) wantPending(replicas, ready int32, pending string) {
	w.Helper()
	got, status := "", w.set.Status
	if p := status.PendingReplica; p != nil {
		got = p.Name + " " + string(p.Reason)
	}
	if status.Replicas != replicas || status.ReadyReplicas != ready || got != pending {
		w.Fatalf("%d replicas, %d ready, pending %q, not %d, %d, %q", status.Replicas, status.ReadyReplicas, got, replicas, ready, pending)
	}
}

// bringUp reconciles until all replicas are ready.
func (w *world) bringUp(names ...string) {
	w.Helper()
	for _, name := range names {
		w.step()
		w.operate(name, "Create", "Succeeded")
		w.step()
		w.register(name)
	}
	w.step()
	w.wantPending(int32(len(names)), int32(len(names)), "")
}

func TestScalesOut(t *testing.T) {
	w := newWorld(t, 2)
	w.step()
	w.wantPending(1, 0, "s-0 ShootReconciling")
	shoot := w.shoot("s-0")
	if owner := metav1.GetControllerOf(shoot); owner == nil || owner.UID != "1" || owner.Kind != "ManagedSeedSet" ||
		*shoot.Spec.DNS.Domain != "s-0.example.org" || shoot.Labels["set"] != "s" {
		t.Errorf("%+v", shoot)
	}
	w.step()
	w.wantPending(1, 0, "s-0 ShootReconciling")
	w.operate("s-0", "Create", "Succeeded")
	w.step()
	w.wantPending(1, 0, "s-0 ManagedSeedPreparing")
	managedSeed, config := w.managedSeed("s-0"), map[string]any{}
	w.Must(json.Unmarshal(managedSeed.Spec.Gardenlet.Config.Raw, &config))
	if managedSeed.Spec.Shoot.Name != "s-0" ||
		!strings.Contains(string(managedSeed.Spec.Gardenlet.Config.Raw), `"ingress.s-0.example.org"`) || config["a"] != 1. {
		t.Errorf("%+v %s", managedSeed.Spec, managedSeed.Spec.Gardenlet.Config.Raw)
	}
	since := w.set.Status.PendingReplica.Since
	w.After(time.Minute)
	w.step()
	if !w.set.Status.PendingReplica.Since.Equal(&since) {
		t.Error("it is as if it had just begun to wait")
	}
	w.register("s-0")
	w.step()
	w.wantPending(2, 1, "s-1 ShootReconciling")
	w.operate("s-1", "Create", "Succeeded")
	w.step()
	w.register("s-1")
	w.step()
	w.wantPending(2, 2, "")
	if w.set.Status.NextReplicaNumber != 2 || w.set.Status.ObservedGeneration != 1 || len(w.set.Finalizers) != 1 {
		t.Errorf("%+v", w.set)
	}
}

func TestScalesIn(t *testing.T) {
	w := newWorld(t, 3)
	w.bringUp("s-0", "s-1", "s-2")
	protected := w.managedSeed("s-0")
	protected.Annotations = map[string]string{seedconstants.AnnotationProtectFromDeletion: "true"}
	w.Must(w.Update(t.Context(), protected))
	w.Must(w.Create(t.Context(), &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "user"},
		Spec: corev1beta1.ShootSpec{SeedName: ptr.To("s-1")}}))
	w.scale(1)
	w.step()
	w.wantPending(3, 2, "s-2 ManagedSeedDeleting")
	w.step()
	w.wantPending(3, 2, "s-2 ShootDeleting")
	if _, err := w.Reconcile(reconcile.AsReconciler(w, w.r), w.set); err == nil {
		t.Error("there is one too many, but no error")
	}
	w.Exists(w.set)
	w.wantPending(2, 2, "")
	if w.shoot("s-2") != nil || w.managedSeed("s-2") != nil {
		t.Error("the replica is still there")
	}
}

func TestNothingCanGo(t *testing.T) {
	w := newWorld(t, 1)
	w.bringUp("s-0")
	shoot := w.shoot("s-0")
	shoot.Annotations = map[string]string{seedconstants.AnnotationProtectFromDeletion: "true"}
	w.Must(w.Update(t.Context(), shoot))
	w.Must(w.Delete(t.Context(), w.set))
	if _, err := w.Reconcile(reconcile.AsReconciler(w, w.r), w.set); err == nil {
		t.Error("no error")
	}
	if w.managedSeed("s-0") == nil || !w.Exists(w.set) {
		t.Error("what is protected has gone")
	}
	shoot.Annotations = nil
	w.Must(w.Update(t.Context(), shoot))
	for range 3 {
		w.step()
	}
	if w.shoot("s-0") != nil || w.Exists(w.set) {
		t.Error("the set stays")
	}
}

func TestRetriesShoot(t *testing.T) {
	w := newWorld(t, 1)
	w.r.MaxShootRetries = 2
	w.step()
	for range 2 {
		w.operate("s-0", "Create", "Failed")
		w.step()
		w.wantPending(1, 0, "s-0 ShootReconciling")
		w.step() // The gardenlet has not seen the annotation yet, so this does not count as another retry.
		if w.shoot("s-0").Annotations[constants.GardenerOperation] != "retry" {
			t.Error("it is not tried again")
		}
		w.operate("s-0", "Create", "Processing")
		w.step()
	}
	if got := w.set.Status.PendingReplica.Retries; got == nil || *got != 2 {
		t.Errorf("retries %v", got)
	}
	w.operate("s-0", "Create", "Failed")
	for range 2 {
		w.step()
		w.wantPending(1, 0, "s-0 ShootReconcileFailed")
		if w.shoot("s-0").Annotations[constants.GardenerOperation] != "" {
			t.Error("it is tried again")
		}
	}
	w.operate("s-0", "Create", "Succeeded")
	w.step()
	w.wantPending(1, 0, "s-0 ManagedSeedPreparing")
}

func TestNameIsTaken(t *testing.T) {
	w := newWorld(t, 1)
	w.Must(w.Create(t.Context(), &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s-0"}}))
	if _, err := w.Reconcile(reconcile.AsReconciler(w, w.r), w.set); err == nil {
		t.Error("no error")
	}
	w.step()
	w.wantPending(1, 0, "s-1 ShootReconciling")
}

func TestOutdatedCache(t *testing.T) {
	w := newWorld(t, 1)
	w.r.Reader = kittest.New(
		t, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s-0", Labels: map[string]string{"set": "s"}}}).Client
	if _, err := w.Reconcile(reconcile.AsReconciler(w, w.r), w.set); err == nil || w.shoot("s-0") != nil {
		t.Errorf("it creates what is there: %v", err)
	}
}

func TestStopsBeingReady(t *testing.T) {
	w := newWorld(t, 1)
	w.bringUp("s-0")
	shoot := w.shoot("s-0")
	shoot.Labels[constants.ShootStatus] = "unhealthy"
	w.Must(w.Update(t.Context(), shoot))
	w.step()
	w.wantPending(1, 0, "s-0 ShootNotHealthy")
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s-0"}}
	w.Exists(seed)
	seed.Status.Conditions[0].Status = "Unknown"
	w.Must(w.Status().Update(t.Context(), seed))
	w.step()
	w.wantPending(1, 0, "s-0 SeedNotReady")
}

func TestLessWorthy(t *testing.T) {
	w := newWorld(t, 0)
	one := func(name, label string, operation corev1beta1.LastOperationState, registered, seedReady bool) *replica {
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{constants.ShootStatus: label}}}
		shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: operation}
		r := &replica{shoot: shoot, seedReady: seedReady}
		if registered {
			r.managedSeed = &seedmanagementv1alpha1.ManagedSeed{Status: seedmanagementv1alpha1.ManagedSeedStatus{
				Conditions: []corev1beta1.Condition{{Type: seedmanagementv1alpha1.SeedRegistered, Status: "True"}}}}
		}
		return r
	}
	order := []*replica{
		one("s-9", "healthy", "Failed", false, false),
		one("s-8", "healthy", "Processing", false, false),
		one("s-7", "healthy", "Succeeded", false, false),
		one("s-6", "healthy", "Succeeded", true, false),
		one("s-5", "unhealthy", "Succeeded", true, true),
		one("s-4", "progressing", "Succeeded", true, true),
		one("other-3", "healthy", "Succeeded", true, true),
		one("s-2", "healthy", "Succeeded", true, true),
		one("s-10", "healthy", "Succeeded", true, true),
	}
	for i := range order {
		for k := range order {
			if got := lessWorthy(w.set)(order[i], order[k]); (got < 0) != (i < k) || (got == 0) != (i == k) {
				t.Errorf("%s and %s: %d", order[i].shoot.Name, order[k].shoot.Name, got)
			}
		}
	}
}

func TestWhoseChangesCount(t *testing.T) {
	w := newWorld(t, 1)
	w.bringUp("s-0")
	for _, obj := range []client.Object{w.shoot("s-0"), w.managedSeed("s-0")} {
		if got := ownerOf(t.Context(), obj); len(got) != 1 || got[0].String() != "garden/s" {
			t.Errorf("%T: %v", obj, got)
		}
	}
	seed := func(name string) *corev1beta1.Seed {
		return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	if got := w.r.setOf(t.Context(), seed("s-0")); len(got) != 1 || got[0].String() != "garden/s" {
		t.Errorf("%v", got)
	}
	if got := w.r.setOf(t.Context(), seed("other")); len(got) != 0 {
		t.Errorf("%v", got)
	}
	before, after := w.shoot("s-0"), w.shoot("s-0")
	p := stateChanged(shootState)
	if p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) || p.Create(event.CreateEvent{Object: after}) ||
		!p.Delete(event.DeleteEvent{Object: after}) {
		t.Error("nothing has happened")
	}
	after.Labels[constants.ShootStatus] = "unhealthy"
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("its health counts")
	}
	after = w.shoot("s-0")
	after.Status.LastOperation.State = corev1beta1.LastOperationStateFailed
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("its state counts")
	}
}
