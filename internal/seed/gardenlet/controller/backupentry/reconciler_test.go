package backupentry

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
)

const name = "shoot--x--y--uid"

var key = client.ObjectKey{Namespace: "garden-x", Name: name}

// seedCluster is a seed with a gardenlet and a provider simulator.
type seedCluster struct {
	client    client.Client
	gardenlet *Reconciler
	simulator *provider.Reconciler
}

type world struct {
	*testing.T
	garden client.Client
	clock  *clocktesting.FakeClock
	seeds  map[string]*seedCluster
}

func newWorld(t *testing.T, bucket *corev1beta1.BackupBucket) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "generated-bucket-b"},
		Data: map[string][]byte{"key": []byte("value")}}
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
			OwnerReferences: []metav1.OwnerReference{{Kind: "Shoot", Name: "y"}}},
		Spec: corev1beta1.BackupEntrySpec{BucketName: "b", SeedName: ptr.To("a")},
	}
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "y"}, Spec: corev1beta1.ShootStateSpec{
		Extensions: []corev1beta1.ExtensionResourceState{
			{Kind: "BackupEntry", Name: ptr.To(name), State: &runtime.RawExtension{Raw: []byte(`{"saved":true}`)}}},
	}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(entry).WithObjects(secret, entry, state, bucket)
	for field, index := range indexes {
		builder = builder.WithIndex(&corev1beta1.BackupEntry{}, field, index)
	}
	w := &world{T: t, garden: builder.Build(), clock: clocktesting.NewFakeClock(time.Now()), seeds: map[string]*seedCluster{}}
	for _, seed := range []string{"a", "b"} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.BackupEntry{}).Build()
		w.seeds[seed] = &seedCluster{c,
			&Reconciler{Base: controllerutils.Base{GardenClient: w.garden, GardenReader: w.garden, SeedClient: c, Clock: w.clock, SeedName: seed,
				Recorder: events.NewFakeRecorder(100)}},
			&provider.Reconciler{Kind: provider.Kinds(provider.Config{})[1], Client: c, Reader: c, Clock: w.clock}}
	}
	return w
}

func readyBucket() *corev1beta1.BackupBucket {
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       corev1beta1.BackupBucketSpec{Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "r"}},
		Status: corev1beta1.BackupBucketStatus{
			GeneratedSecretRef: &corev1.SecretReference{Namespace: "garden", Name: "generated-bucket-b"},
			LastOperation:      &corev1beta1.LastOperation{Type: "Create", State: "Succeeded"},
		},
	}
}

// settle reconciles with the gardenlet and the provider simulator of a seed in turn.
func (w *world) settle(seed string, rounds int) {
	w.Helper()
	for range rounds {
		if _, err := w.seeds[seed].gardenlet.Reconcile(w.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			w.Fatal(err)
		}
		if _, err := w.seeds[seed].simulator.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) entry() *corev1beta1.BackupEntry {
	w.Helper()
	entry := &corev1beta1.BackupEntry{}
	if err := w.garden.Get(w.Context(), key, entry); err != nil {
		w.Fatal(err)
	}
	return entry
}

func (w *world) expect(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState, seed string) *corev1beta1.BackupEntry {
	w.Helper()
	entry := w.entry()
	if last := entry.Status.LastOperation; last == nil || last.Type != t || last.State != state ||
		ptr.Deref(entry.Status.SeedName, "") != seed {
		w.Fatalf("last operation: %+v on seed %q, want %s %s on %q", last, ptr.Deref(entry.Status.SeedName, ""), t, state, seed)
	}
	return entry
}

// extension returns the extension resource in a seed, nil if there is none.
func (w *world) extension(seed string) *extensionsv1alpha1.BackupEntry {
	w.Helper()
	extension := &extensionsv1alpha1.BackupEntry{}
	err := w.seeds[seed].client.Get(w.Context(), client.ObjectKey{Name: name}, extension)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return extension
}

func (w *world) hasSecret(seed string) bool {
	return w.seeds[seed].client.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "entry-" + name}, &corev1.Secret{}) == nil
}

func TestLife(t *testing.T) {
	w := newWorld(t, readyBucket())
	w.settle("a", 1)
	w.settle("b", 1)
	w.expect("Create", "Processing", "a")
	w.settle("a", 1)
	entry := w.expect("Create", "Succeeded", "a")
	if w.extension("a") == nil || !w.hasSecret("a") || w.extension("b") != nil {
		t.Fatal("the entry is not where it belongs")
	}
	requests := w.seeds["a"].gardenlet.entries(byName)(t.Context(), w.extension("a"))
	if len(requests) != 1 || requests[0].NamespacedName != key {
		t.Errorf("what the extension resource is for: %v", requests)
	}
	for _, r := range []*Reconciler{w.seeds["a"].gardenlet, w.seeds["b"].gardenlet} {
		r.DeletionGracePeriod = 48 * time.Hour
	}
	if err := w.garden.Delete(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	w.settle("a", 1)
	pending := w.expect("Delete", "Pending", "a")
	w.clock.Step(time.Hour)
	w.settle("a", 1)
	if again := w.expect("Delete", "Pending", "a"); again.ResourceVersion != pending.ResourceVersion {
		t.Errorf("written again: %q", again.Status.LastOperation.Description)
	}
	w.clock.Step(48 * time.Hour)
	w.settle("a", 2)
	if err := w.garden.Get(t.Context(), key, entry); !apierrors.IsNotFound(err) || w.extension("a") != nil || w.hasSecret("a") {
		t.Errorf("something is left: %v", err)
	}
}

func TestMove(t *testing.T) {
	w := newWorld(t, readyBucket())
	w.settle("a", 2)
	entry := w.expect("Create", "Succeeded", "a")
	entry.Spec.SeedName = ptr.To("b")
	if err := w.garden.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	w.settle("b", 1)
	if w.extension("b") != nil {
		t.Fatal("the other seed did not wait")
	}
	w.settle("a", 1)
	w.expect("Migrate", "Processing", "a")
	if last := w.extension("a").Status.LastOperation; last.Type != "Migrate" || last.State != "Succeeded" {
		t.Fatalf("%+v", last)
	}
	w.settle("a", 2)
	entry = w.expect("Migrate", "Succeeded", "")
	if w.extension("a") != nil || w.hasSecret("a") {
		t.Fatal("the entry was not released")
	}
	w.settle("b", 1)
	if w.extension("b") != nil {
		t.Fatal("it was restored before the restoration was requested")
	}
	entry.Annotations = map[string]string{"gardener.cloud/operation": "restore"}
	if err := w.garden.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	w.settle("b", 1)
	w.expect("Restore", "Processing", "b")
	w.settle("b", 1)
	entry = w.expect("Restore", "Succeeded", "b")
	extension := w.extension("b")
	if entry.Annotations["gardener.cloud/operation"] != "" || extension.Status.LastOperation.Type != "Restore" ||
		string(extension.Status.State.Raw) != `{"saved":true}` {
		t.Errorf("%v %+v", entry.Annotations, extension.Status)
	}
}

// TestMoveFromOutdatedCache checks that an entry moves if its seed changes right before an operation succeeds, and the
// migration begins with an entry from the cache that does not have this success yet.
func TestMoveFromOutdatedCache(t *testing.T) {
	w := newWorld(t, readyBucket())
	w.settle("a", 1)
	outdated := w.expect("Create", "Processing", "a")
	outdated.Spec.SeedName = ptr.To("b")
	if err := w.garden.Update(t.Context(), outdated); err != nil {
		t.Fatal(err)
	}
	current := outdated.DeepCopy()
	last := current.Status.LastOperation
	last.State, last.Progress, last.Description = "Succeeded", 100, "Reconciliation of BackupEntry succeeded."
	if err := w.garden.Status().Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	gardenlet := w.seeds["a"].gardenlet
	gardenlet.GardenClient = interceptor.NewClient(w.garden.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if entry, ok := obj.(*corev1beta1.BackupEntry); ok {
				outdated.DeepCopyInto(entry)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		}})
	if _, err := gardenlet.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
	gardenlet.GardenClient = w.garden
	w.settle("a", 3)
	w.expect("Migrate", "Succeeded", "")
}

// TestBucketThatIsReconciled: an entry waits for a bucket that is being reconciled, and does not fail.
func TestBucketThatIsReconciled(t *testing.T) {
	for name, change := range map[string]func(*corev1beta1.BackupBucket){
		"processing": func(b *corev1beta1.BackupBucket) { b.Status.LastOperation.State = "Processing" },
		"changed":    func(b *corev1beta1.BackupBucket) { b.Generation = 7 },
		"new":        func(b *corev1beta1.BackupBucket) { b.Status.LastOperation = nil },
	} {
		t.Run(name, func(t *testing.T) {
			bucket := readyBucket()
			change(bucket)
			w := newWorld(t, bucket)
			w.settle("a", 1)
			status := w.expect("Create", "Processing", "a").Status
			if status.LastError != nil || !strings.Contains(status.LastOperation.Description, bucket.Name) {
				t.Errorf("%+v, %+v", status.LastOperation, status.LastError)
			}
			if w.extension("a") != nil {
				t.Error("the extension was asked")
			}
		})
	}
}

func TestBucketThatIsNotReady(t *testing.T) {
	for says, change := range map[string]func(*corev1beta1.BackupBucket){
		"not Succeeded but Failed": func(b *corev1beta1.BackupBucket) { b.Status.LastOperation.State = "Failed" },
		"no quota": func(b *corev1beta1.BackupBucket) {
			b.Status.LastError = &corev1beta1.LastError{Description: "no quota", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED"}}
		},
		"not found": func(b *corev1beta1.BackupBucket) { b.Name = "other" },
	} {
		t.Run(says, func(t *testing.T) {
			bucket := readyBucket()
			change(bucket)
			w := newWorld(t, bucket)
			w.settle("a", 1)
			failure := w.expect("Create", "Error", "a").Status.LastError
			if failure == nil || !strings.Contains(failure.Description, says) || (says == "no quota") != (len(failure.Codes) == 1) {
				t.Errorf("%+v", failure)
			}
			if w.extension("a") != nil {
				t.Error("the extension was asked")
			}
		})
	}
}

func TestGrace(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		annotations map[string]string
		purposes    []corev1beta1.ShootPurpose
		stays       bool
	}{
		"all":           {stays: true},
		"forced":        {annotations: map[string]string{"backupentry.core.gardener.cloud/force-deletion": "true"}},
		"purpose":       {map[string]string{"shoot.gardener.cloud/purpose": "production"}, []corev1beta1.ShootPurpose{"production"}, true},
		"other purpose": {map[string]string{"shoot.gardener.cloud/purpose": "testing"}, []corev1beta1.ShootPurpose{"production"}, false},
		"no purpose":    {nil, []corev1beta1.ShootPurpose{"production"}, true},
	} {
		r := &Reconciler{Base: controllerutils.Base{Clock: clocktesting.NewFakeClock(now)},
			DeletionGracePeriod: time.Hour, DeletionGracePeriodShootPurposes: test.purposes}
		entry := &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations, DeletionTimestamp: &metav1.Time{Time: now}}}
		if stays := r.grace(entry) > 0; stays != test.stays {
			t.Errorf("%s: %v", name, stays)
		}
	}
}

// TestChanged checks that an entry triggers a reconciliation in the new seed when the previous seed has released it,
// which changes only the status.
func TestChanged(t *testing.T) {
	entry := func(on *string, state corev1beta1.LastOperationState, asked string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Annotations: map[string]string{"gardener.cloud/operation": asked}},
			Spec:       corev1beta1.BackupEntrySpec{BucketName: "b", SeedName: ptr.To("b")},
			Status:     corev1beta1.BackupEntryStatus{SeedName: on, LastOperation: &corev1beta1.LastOperation{Type: "Migrate", State: state}},
		}
	}
	a := ptr.To("a")
	for what, test := range map[string]struct {
		before, after *corev1beta1.BackupEntry
		seeds         string
	}{
		"asked before it comes":            {entry(a, "Processing", "restore"), entry(nil, "Succeeded", "restore"), "b"},
		"it comes":                         {entry(a, "Processing", ""), entry(nil, "Succeeded", ""), ""},
		"asked after it has come":          {entry(nil, "Succeeded", ""), entry(nil, "Succeeded", "restore"), "b"},
		"asked while it is elsewhere":      {entry(a, "Processing", ""), entry(a, "Processing", "restore"), "a"},
		"nothing but progress":             {entry(a, "Pending", ""), entry(a, "Processing", ""), ""},
		"nothing new after it was to come": {entry(nil, "Succeeded", "restore"), entry(nil, "Succeeded", "restore"), ""},
	} {
		got := ""
		for _, seed := range []string{"a", "b"} {
			r := &Reconciler{Base: controllerutils.Base{SeedName: seed}}
			if r.changed().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}) {
				got += seed
			}
		}
		if got != test.seeds {
			t.Errorf("%s: %q hear of it, want %q", what, got, test.seeds)
		}
	}
}
