package provider

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

type world struct {
	*testing.T
	client client.Client
	clock  *clocktesting.FakeClock
	r      *Reconciler
}

// newWorld returns a world with a BackupEntry that has the annotations, and its credentials.
func newWorld(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := schemes.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	entry := &extensionsv1alpha1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--b--uid", Annotations: annotations, Generation: 3},
		Spec: extensionsv1alpha1.BackupEntrySpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, BucketName: "bucket",
			SecretRef: corev1.SecretReference{Namespace: "garden", Name: "entry"},
		},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"},
		Data: map[string][]byte{"key": []byte("value")}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--b"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(entry).WithObjects(entry, secret, namespace).Build()
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 7e8, time.UTC))
	w := &world{T: t, client: c, clock: clk}
	w.restart()
	return w
}

// restart replaces the reconciler with a new one without any memory.
func (w *world) restart() {
	kind := Kinds(Config{})[slices.IndexFunc(Kinds(Config{}), func(k Kind) bool { return k.Name == "backupentry" })]
	w.r = &Reconciler{Kind: kind, Client: w.client, Reader: w.client, Clock: w.clock}
}

func (w *world) reconcile() (time.Duration, error) {
	result, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "shoot--a--b--uid"}})
	return result.RequeueAfter, err
}

func (w *world) entry() *extensionsv1alpha1.BackupEntry {
	w.Helper()
	entry := &extensionsv1alpha1.BackupEntry{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: "shoot--a--b--uid"}, entry); err != nil {
		w.Fatal(err)
	}
	return entry
}

func (w *world) annotate(change func(map[string]string)) {
	w.Helper()
	entry := w.entry()
	annotate(entry, change)
	if err := w.client.Update(w.Context(), entry); err != nil {
		w.Fatal(err)
	}
}

func (w *world) expect(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *extensionsv1alpha1.BackupEntry {
	w.Helper()
	entry := w.entry()
	last := entry.Status.LastOperation
	if last == nil || last.Type != t || last.State != state {
		w.Fatalf("last operation is %+v, want %s %s", last, t, state)
	}
	return entry
}

func TestLife(t *testing.T) {
	w := newWorld(t, map[string]string{constants.GardenerOperation: constants.GardenerOperationReconcile})
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	entry := w.expect("Create", "Succeeded")
	if entry.Status.ObservedGeneration != 3 || entry.Status.LastOperation.Progress != 100 || len(entry.Annotations) != 0 ||
		!slices.Equal(entry.Finalizers, []string{"extensions.gardener.cloud/backupentry"}) {
		t.Fatalf("%+v", entry)
	}
	etcd, credentials := &corev1.Secret{}, &corev1.Secret{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "shoot--a--b", Name: "etcd-backup"}, etcd); err != nil ||
		string(etcd.Data["bucketName"]) != "bucket" || string(etcd.Data["key"]) != "value" {
		t.Fatalf("etcd's credentials: %v %v", etcd.Data, err)
	}
	key := client.ObjectKey{Namespace: "garden", Name: "entry"}
	if err := w.client.Get(t.Context(), key, credentials); err != nil || !slices.Equal(credentials.Finalizers, entry.Finalizers) {
		t.Fatalf("credentials: %v %v", credentials.Finalizers, err)
	}
	w.annotate(func(a map[string]string) { a[constants.GardenerOperation] = constants.GardenerOperationReconcile })
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.expect("Reconcile", "Succeeded")
	if err := w.client.Delete(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(entry), entry); !apierrors.IsNotFound(err) {
		t.Fatalf("the entry is still there: %v", err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd); !apierrors.IsNotFound(err) {
		t.Fatalf("etcd's credentials are still there: %v", err)
	}
	if err := w.client.Get(t.Context(), key, credentials); err != nil || len(credentials.Finalizers) != 0 {
		t.Fatalf("credentials: %v %v", credentials.Finalizers, err)
	}
}

func TestMigrateAndRestore(t *testing.T) {
	w := newWorld(t, nil)
	for _, step := range []struct {
		operation  string
		kind       corev1beta1.LastOperationType
		finalizers int
	}{{"wait-for-state", "", 0}, {"restore", "Restore", 1}, {"migrate", "Migrate", 0}, {"reconcile", "Migrate", 0}} {
		w.annotate(func(a map[string]string) { a[constants.GardenerOperation] = step.operation })
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		entry := w.entry()
		if step.kind != "" {
			w.expect(step.kind, "Succeeded")
		} else if entry.Status.LastOperation != nil {
			t.Errorf("%s: %+v", step.operation, entry.Status.LastOperation)
		}
		kept := entry.Annotations[constants.GardenerOperation] != ""
		if wanted := step.operation == "wait-for-state" || step.operation == "reconcile"; kept != wanted ||
			len(entry.Finalizers) != step.finalizers {
			t.Errorf("%s: annotations %v, finalizers %v", step.operation, entry.Annotations, entry.Finalizers)
		}
	}
}

func TestDelay(t *testing.T) {
	w := newWorld(t, map[string]string{injection.AnnotationDelay: "90s"})
	if wait, err := w.reconcile(); err != nil || wait != 90*time.Second {
		t.Fatalf("%s %v", wait, err)
	}
	w.expect("Create", "Processing")
	w.clock.Step(30 * time.Second)
	w.restart()
	if wait, err := w.reconcile(); err != nil || wait != time.Minute {
		t.Fatalf("after a restart: %s %v", wait, err)
	}
	w.annotate(func(a map[string]string) { a[injection.AnnotationDelay] = "30500ms" })
	if wait, err := w.reconcile(); err != nil || wait != 500*time.Millisecond {
		t.Fatalf("after it was made shorter: %s %v", wait, err)
	}
	w.clock.Step(500 * time.Millisecond)
	if wait, err := w.reconcile(); err != nil || wait != 0 {
		t.Fatalf("in the end: %s %v", wait, err)
	}
	if entry := w.expect("Create", "Succeeded"); entry.Annotations[injection.AnnotationStarted] != "" {
		t.Errorf("%v", entry.Annotations)
	}
	// The next operation is delayed from its own beginning.
	w.annotate(func(a map[string]string) { a[constants.GardenerOperation] = constants.GardenerOperationReconcile })
	if wait, err := w.reconcile(); err != nil || wait != 30500*time.Millisecond {
		t.Fatalf("the next one: %s %v", wait, err)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name, delay, fail string
		says              string
		codes             []corev1beta1.ErrorCode
		again             bool // fails again
	}{
		{name: "once", fail: "once", says: "failure injected"},
		{name: "once with code", fail: "once:ERR_INFRA_QUOTA_EXCEEDED", says: "injected",
			codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED"}},
		{name: "always with code and text", fail: "always:ERR_INFRA_DEPENDENCIES still in use", says: ": still in use",
			codes: []corev1beta1.ErrorCode{"ERR_INFRA_DEPENDENCIES"}, again: true},
		{name: "text", fail: "always: no luck", says: ": no luck", again: true},
		{name: "unknown code", fail: "once:ERR_NONE", says: "no error code ERR_NONE",
			codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}, again: true},
		{name: "unknown word", fail: "sometimes", says: "once or always",
			codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}, again: true},
		{name: "long text", fail: "once:" + strings.Repeat("x", 1025), says: "1025 characters",
			codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}, again: true},
		{name: "long delay", delay: "24h1s", says: "0s to 24h", codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}, again: true},
		{name: "negative delay", delay: "-1s", says: "0s to 24h", codes: []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}, again: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.annotate(func(a map[string]string) {
				if a[injection.AnnotationFail] = test.fail; test.fail == "" {
					delete(a, injection.AnnotationFail)
					a[injection.AnnotationDelay] = test.delay
				}
			})
			if _, err := w.reconcile(); err == nil {
				t.Fatal("it did not fail")
			}
			failure := w.expect("Create", "Error").Status.LastError
			if failure == nil || !strings.Contains(failure.Description, test.says) || !slices.Equal(failure.Codes, test.codes) {
				t.Fatalf("last error: %+v", failure)
			}
			w.restart()
			if _, err := w.reconcile(); (err != nil) != test.again {
				t.Fatalf("the second time: %v", err)
			}
			w.annotate(func(a map[string]string) { delete(a, injection.AnnotationFail); delete(a, injection.AnnotationDelay) })
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if entry := w.expect("Create", "Succeeded"); entry.Status.LastError != nil {
				t.Errorf("%+v", entry.Status.LastError)
			}
		})
	}
}

func TestFailOnceIsArmedAgain(t *testing.T) {
	w := newWorld(t, map[string]string{injection.AnnotationFail: "once"})
	ask := func(a map[string]string) { a[constants.GardenerOperation] = constants.GardenerOperationReconcile }
	for i, step := range []struct {
		change func(map[string]string)
		fails  bool
	}{
		{ask, true},
		{ask, false},
		{ask, false},
		{func(a map[string]string) { ask(a); a[injection.AnnotationFail] = "once:another" }, true},
		{func(a map[string]string) { ask(a); delete(a, injection.AnnotationFail) }, false},
		{func(a map[string]string) { ask(a); a[injection.AnnotationFail] = "once:another" }, true},
	} {
		w.annotate(step.change)
		if _, err := w.reconcile(); (err != nil) != step.fails {
			t.Errorf("step %d: %v", i, err)
		}
	}
}

func TestMissingCredentialsAndOthersObjects(t *testing.T) {
	w := newWorld(t, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"}}
	if err := w.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err == nil || !strings.Contains(w.expect("Create", "Error").Status.LastError.Description, "garden/entry") {
		t.Fatalf("without credentials: %v", err)
	}
	before := w.entry()
	before.Spec.Type = "other"
	if err := w.client.Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil || w.entry().ResourceVersion != before.ResourceVersion {
		t.Errorf("an object of another provider was touched: %v", err)
	}
}

func TestDue(t *testing.T) {
	entry := func(state corev1beta1.LastOperationState, annotations ...string) *extensionsv1alpha1.BackupEntry {
		e := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		e.Status.LastOperation = &corev1beta1.LastOperation{State: state}
		for i := 0; i < len(annotations); i += 2 {
			e.Annotations[annotations[i]] = annotations[i+1]
		}
		return e
	}
	const op, at = constants.GardenerOperation, constants.GardenerTimestamp
	for name, test := range map[string]struct {
		before, after *extensionsv1alpha1.BackupEntry
		want          bool
	}{
		"operation":                  {entry("Succeeded"), entry("Succeeded", op, "reconcile"), true},
		"operation asked for again":  {entry("Succeeded", op, "migrate", at, "1"), entry("Succeeded", op, "migrate", at, "2"), true},
		"own status in an operation": {entry("Processing", op, "migrate"), entry("Error", op, "migrate"), false},
		"own answer":                 {entry("Succeeded", op, "reconcile"), entry("Succeeded"), false},
		"delay while processing": {entry("Processing", injection.AnnotationDelay, "1h"),
			entry("Processing", injection.AnnotationDelay, "1s"), true},
		"delay when done":    {entry("Succeeded"), entry("Succeeded", injection.AnnotationDelay, "1s"), false},
		"failure taken away": {entry("Error", injection.AnnotationFail, "always"), entry("Error"), true},
	} {
		if got := operationEvents(false).Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	changed := event.UpdateEvent{ObjectOld: entry("Succeeded"), ObjectNew: entry("Succeeded")}
	changed.ObjectNew.SetGeneration(2)
	if operationEvents(false).Update(changed) || !operationEvents(true).Update(changed) {
		t.Error("another spec is let through where objects are guarded, and nowhere else")
	}
}
