package seed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// world holds fake clients for a garden and a seed, and a reconciler.
type world struct {
	*testing.T
	garden, seed client.Client
	clock        *clocktesting.FakeClock
	events       *events.FakeRecorder
	reconciler   *Reconciler
	// mainPatch and seedWrite, if not nil, are called before an object in the garden is patched (except for its status)
	// and before an object is created in the seed.
	mainPatch, seedWrite func() error
	reported             []corev1beta1.LastOperation
	// unknown makes the garden deny the gardenlet access to the Seed's namespace.
	unknown bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(100)}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.Seed{}).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-a"}}).WithObjects(objects...).
		WithIndex(&corev1beta1.BackupBucket{}, "spec.seedName", func(o client.Object) []string {
			return []string{ptr.Deref(o.(*corev1beta1.BackupBucket).Spec.SeedName, "")}
		}).
		WithIndex(&corev1beta1.ControllerInstallation{}, "spec.seedRef.name", func(o client.Object) []string {
			return []string{o.(*corev1beta1.ControllerInstallation).Spec.SeedRef.Name}
		}).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.gardenCreate, Patch: w.gardenPatch, SubResourcePatch: w.gardenStatus}).Build()
	w.seed = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "seed-uid"}}).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.seedCreate}).Build()
	w.reconciler = &Reconciler{
		Base: controllerutils.Base{GardenClient: w.garden, GardenReader: w.garden, SeedClient: w.seed, SeedReader: w.seed, Clock: w.clock,
			SeedName: "a", Recorder: w.events},
		Identity: &corev1beta1.Gardener{ID: "id", Name: "gardenlet-0", Version: "v1.150.0"},
		Version:  func(context.Context) (string, error) { return "v1.36.4", nil },
	}
	return w
}

func (w *world) gardenCreate(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = !w.unknown && review.Spec.ResourceAttributes.Name == "seed-a"
		return nil
	}
	return c.Create(ctx, obj, opts...)
}

func (w *world) gardenPatch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	if w.mainPatch != nil {
		if err := w.mainPatch(); err != nil {
			return err
		}
	}
	return c.Patch(ctx, obj, patch, opts...)
}

func (w *world) gardenStatus(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	if seed, ok := obj.(*corev1beta1.Seed); ok && seed.Status.LastOperation != nil {
		w.reported = append(w.reported, *seed.Status.LastOperation)
	}
	return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
}

func (w *world) seedCreate(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	if w.seedWrite != nil {
		if err := w.seedWrite(); err != nil {
			return err
		}
	}
	return c.Create(ctx, obj, opts...)
}

func someSeed() *corev1beta1.Seed {
	return &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", Generation: 3},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: "local", Region: "r", Zones: []string{"1", "2"}},
			Backup: &corev1beta1.Backup{Provider: "local", CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup",
			}},
		},
	}
}

func (w *world) run() (reconcile.Result, error) {
	return w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "a"}})
}

// after reconciles once, and expects success and this delay until the next reconciliation.
func (w *world) after(want time.Duration) {
	w.Helper()
	if result, err := w.run(); err != nil || result.RequeueAfter != want {
		w.Fatalf("reconciling: again after %s (want %s), %v", result.RequeueAfter, want, err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) read() *corev1beta1.Seed {
	w.Helper()
	seed := &corev1beta1.Seed{}
	w.must(w.garden.Get(w.Context(), client.ObjectKey{Name: "a"}, seed))
	return seed
}

func (w *world) expectLast(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState, progress int32, description string) {
	w.Helper()
	last := w.read().Status.LastOperation
	if last == nil || last.Type != kind || last.State != state || last.Progress != progress ||
		!strings.Contains(last.Description, description) || !last.LastUpdateTime.Time.Equal(w.clock.Now()) {
		w.Errorf("the last operation is %+v, want %s, %s, %d %%: %s", last, kind, state, progress, description)
	}
}

const (
	reconciles = corev1beta1.LastOperationTypeReconcile
	deletes    = corev1beta1.LastOperationTypeDelete
	processing = corev1beta1.LastOperationStateProcessing
	succeeds   = corev1beta1.LastOperationStateSucceeded
	fails      = corev1beta1.LastOperationStateError
)

func TestReconcile(t *testing.T) {
	w := newWorld(t, someSeed())
	until := w.clock.Now().Add(time.Hour)
	w.reconciler.CertificateExpiration = func() time.Time { return until }
	w.reconciler.Resources = &gardenletconfigv1alpha1.ResourcesConfiguration{
		Capacity: corev1.ResourceList{"shoots": resource.MustParse("100"), "other": resource.MustParse("5")},
		Reserved: corev1.ResourceList{"shoots": resource.MustParse("10")},
	}
	w.after(time.Hour)
	w.expectLast(reconciles, succeeds, 100, "Seed cluster has been successfully reconciled.")
	seed := w.read()
	status := seed.Status
	if len(seed.Finalizers) != 1 || seed.Finalizers[0] != "gardener" || status.ObservedGeneration != 3 ||
		status.Gardener.Name != "gardenlet-0" ||
		ptr.Deref(status.KubernetesVersion, "") != "v1.36.4" || ptr.Deref(status.ClusterIdentity, "") != "seed-uid" ||
		!status.ClientCertificateExpirationTimestamp.Time.Equal(until) {
		t.Errorf("the Seed is %+v", seed)
	}
	for name, want := range map[corev1.ResourceName][2]int64{"shoots": {100, 90}, "other": {5, 5}} {
		capacity, allocatable := status.Capacity[name], status.Allocatable[name]
		if capacity.Value() != want[0] || allocatable.Value() != want[1] {
			t.Errorf("%s: %v of %v", name, allocatable, capacity)
		}
	}
	if first := w.reported[0]; first.State != processing || first.Progress != 0 ||
		first.Description != "Reconciliation of Seed cluster initialized." || len(w.reported) != 3 {
		t.Errorf("reported %+v", w.reported) // start, identity, end
	}
	until = until.Add(time.Hour)
	w.after(time.Hour)
	if !w.read().Status.ClientCertificateExpirationTimestamp.Time.Equal(until) {
		t.Error("the new certificate is not known")
	}
}

func TestInTheSeed(t *testing.T) {
	w := newWorld(t, someSeed())
	w.after(time.Hour)
	namespace := &corev1.Namespace{}
	w.must(w.seed.Get(t.Context(), client.ObjectKey{Name: "garden"}, namespace))
	for label, want := range map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged", "gardener.cloud/role": "garden", "role": "garden",
		"high-availability-config.resources.gardener.cloud/consider": "true",
	} {
		if namespace.Labels[label] != want {
			t.Errorf("label %s is %q", label, namespace.Labels[label])
		}
	}
	if namespace.Annotations["high-availability-config.resources.gardener.cloud/zones"] != "1,2" {
		t.Errorf("the annotations are %v", namespace.Annotations)
	}
	w.must(w.seed.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, namespace))
	if namespace.Labels["role"] != "kube-system" {
		t.Errorf("kube-system has the labels %v", namespace.Labels)
	}
	identity := identityConfigMap()
	w.must(w.seed.Get(t.Context(), client.ObjectKeyFromObject(identity), identity))
	if identity.Data["cluster-identity"] != "seed-uid" || identity.Data["origin"] != "seed" || !ptr.Deref(identity.Immutable, false) {
		t.Errorf("the identity is %+v", identity)
	}
}

func TestIdentityFromBeforeIsKept(t *testing.T) {
	w := newWorld(t, someSeed())
	identity := identityConfigMap()
	identity.Data = map[string]string{"cluster-identity": "shoot-x", "origin": "shoot"}
	w.must(w.seed.Create(t.Context(), identity))
	w.after(time.Hour)
	if got := ptr.Deref(w.read().Status.ClusterIdentity, ""); got != "shoot-x" {
		t.Errorf("the identity is %q", got)
	}
	w.must(w.garden.Delete(t.Context(), w.read()))
	w.must(client.IgnoreNotFound(w.garden.Delete(t.Context(), &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "uid"}})))
	w.after(0)
	w.must(w.seed.Get(t.Context(), client.ObjectKeyFromObject(identity), identity))
}

func TestBackupBucket(t *testing.T) {
	w := newWorld(t, someSeed())
	w.after(time.Hour)
	bucket := &corev1beta1.BackupBucket{}
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Name: "uid"}, bucket))
	if s := bucket.Spec; s.Provider.Type != "local" || s.Provider.Region != "r" || ptr.Deref(s.SeedName, "") != "a" ||
		s.CredentialsRef.Name != "backup" {
		t.Errorf("the bucket is %+v", s)
	}
	if owner := metav1.GetControllerOf(bucket); owner == nil || owner.Kind != "Seed" || owner.UID != "uid" {
		t.Errorf("the owners are %+v", bucket.OwnerReferences)
	}
	if len(bucket.Annotations) > 0 {
		t.Errorf("a new bucket is asked for something: %v", bucket.Annotations)
	}
	w.after(time.Hour)
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Name: "uid"}, bucket))
	if bucket.Annotations["gardener.cloud/operation"] != "reconcile" {
		t.Errorf("the annotations are %v", bucket.Annotations)
	}
	seed := w.read()
	seed.Spec.Backup.Region = ptr.To("far")
	w.must(w.garden.Update(t.Context(), seed))
	w.after(time.Hour)
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Name: "uid"}, bucket))
	if bucket.Spec.Provider.Region != "far" {
		t.Errorf("the bucket is %+v", bucket.Spec)
	}
}

func TestHealthHasToBeLookedAtAgain(t *testing.T) {
	seed := someSeed()
	for _, kind := range []corev1beta1.ConditionType{"SeedSystemComponentsHealthy", "GardenletReady", "ExtensionsReady"} {
		seed.Status.Conditions = append(
			seed.Status.Conditions, conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue, Reason: "Well"})
	}
	w := newWorld(t, seed)
	w.after(time.Hour)
	for _, c := range w.read().Status.Conditions {
		want := corev1beta1.ConditionTrue
		if c.Type == "SeedSystemComponentsHealthy" {
			want = corev1beta1.ConditionProgressing
		}
		if c.Status != want || c.Reason != "Well" {
			t.Errorf("%s is %s (%s)", c.Type, c.Status, c.Reason)
		}
	}
}

func TestFailureAndProgress(t *testing.T) {
	w := newWorld(t, someSeed())
	w.seedWrite = func() error { return errors.New("disk full") }
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("the error is %v", err)
	}
	w.expectLast(reconciles, fails, 0, "disk full Operation will be retried.")
	w.seedWrite = func() error { w.clock.Step(10 * time.Second); return nil }
	w.reported = nil
	w.after(time.Hour)
	var percents []int32
	for _, last := range w.reported {
		percents = append(percents, last.Progress)
	}
	if len(percents) < 4 || percents[1] != 25 {
		t.Errorf("the progress was %v: %+v", percents, w.reported)
	}
	w.expectLast(reconciles, succeeds, 100, "")
}

func TestNewSeedWaitsForItsNamespace(t *testing.T) {
	seed := someSeed()
	w := newWorld(t, seed)
	seed = w.read()
	seed.CreationTimestamp = metav1.NewTime(w.clock.Now())
	w.must(w.garden.Update(t.Context(), seed))
	w.unknown = true
	w.after(namespaceRetry)
	w.unknown = false
	w.must(w.garden.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-a"}}))
	w.after(namespaceRetry)
	if seed := w.read(); len(w.reported) > 0 || len(seed.Finalizers) > 0 {
		t.Errorf("it does not wait: %+v, %v", w.reported, seed.Finalizers)
	}
	w.clock.Step(time.Minute)
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "no namespace seed-a") ||
		!strings.Contains(err.Error(), "controller-manager") {
		t.Errorf("after a minute: %v", err)
	}
	w.expectLast(reconciles, fails, 0, "no namespace seed-a")
	w.must(w.garden.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-a"}}))
	w.after(time.Hour)
	w.expectLast(reconciles, succeeds, 100, "")
}

func TestUnknownVersion(t *testing.T) {
	w := newWorld(t, someSeed())
	w.reconciler.Version = func(context.Context) (string, error) { return "", errors.New("no version") }
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "no version") {
		t.Errorf("the error is %v", err)
	}
	w.expectLast(reconciles, fails, 0, "no version")
}

func TestConflictIsNoFailure(t *testing.T) {
	w := newWorld(t, someSeed())
	w.mainPatch = func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "seeds"}, "a", errors.New("changed"))
	}
	w.after(conflictRetry)
	w.expectLast(reconciles, processing, 0, "")
	w.mainPatch = nil
	w.after(time.Hour)
}

func TestSeedOfAnotherGardenlet(t *testing.T) {
	w := newWorld(t, someSeed())
	w.reconciler.SeedName = "b"
	w.after(0)
	if w.read().Status.LastOperation != nil {
		t.Error("it was looked after")
	}
}
