package backupbucket

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

type world struct {
	*testing.T
	garden, seed client.Client
	clock        *clocktesting.FakeClock
	events       *events.FakeRecorder
	gardenlet    *Reconciler
	simulator    *provider.Reconciler
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, securityv1alpha1.AddToScheme,
		extensionsv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Now()), events: events.NewFakeRecorder(100)}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.BackupBucket{}).WithObjects(objects...).Build()
	w.seed = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.BackupBucket{}).Build()
	w.gardenlet = &Reconciler{Base: controllerutils.Base{GardenClient: w.garden, GardenReader: w.garden, SeedClient: w.seed, Clock: w.clock,
		SeedName: "a", Recorder: w.events}}
	w.simulator = &provider.Reconciler{Kind: provider.Kinds(provider.Config{})[0], Client: w.seed,
		Reader: w.seed, Clock: w.clock}
	return w
}

func credentials() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{"key": []byte("value")}}
}

func newBucket() *corev1beta1.BackupBucket {
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "1", Generation: 1},
		Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "r"}, SeedName: ptr.To("a"),
			ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"b":1,"a":2}`)},
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
		},
	}
}

var request = reconcile.Request{NamespacedName: client.ObjectKey{Name: "b"}}

// gardenletRuns and simulatorRuns reconcile once.
func (w *world) gardenletRuns() (reconcile.Result, error) {
	return w.gardenlet.Reconcile(w.Context(), request)
}
func (w *world) simulatorRuns() (reconcile.Result, error) {
	return w.simulator.Reconcile(w.Context(), request)
}

func (w *world) settle() {
	w.Helper()
	for range 2 {
		if _, err := w.gardenletRuns(); err != nil {
			w.Fatal(err)
		}
		if _, err := w.simulatorRuns(); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) bucket() *corev1beta1.BackupBucket {
	w.Helper()
	bucket := &corev1beta1.BackupBucket{}
	if err := w.garden.Get(w.Context(), request.NamespacedName, bucket); err != nil {
		w.Fatal(err)
	}
	return bucket
}

func (w *world) expect(t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.BackupBucket {
	w.Helper()
	bucket := w.bucket()
	if last := bucket.Status.LastOperation; last == nil || last.Type != t || last.State != state {
		w.Fatalf("last operation: %+v, want %s %s", last, t, state)
	}
	return bucket
}

func (w *world) secret(c client.Client, name string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: name}, secret); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	} else if err != nil {
		return nil
	}
	return secret
}

func TestLife(t *testing.T) {
	w := newWorld(t, credentials(), newBucket())
	w.settle()
	bucket := w.expect("Create", "Succeeded")
	if !slices.Equal(bucket.Finalizers, []string{"gardener"}) || bucket.Status.ObservedGeneration != 1 ||
		*bucket.Status.GeneratedSecretRef != (corev1.SecretReference{Namespace: "garden", Name: "generated-bucket-b"}) {
		t.Fatalf("%+v", bucket)
	}
	if secret := w.secret(w.garden, "backup"); !slices.Equal(secret.Finalizers, []string{finalizer}) {
		t.Errorf("credentials: %v", secret.Finalizers)
	}
	if secret := w.secret(w.seed, "bucket-b"); string(secret.Data["key"]) != "value" {
		t.Errorf("credentials in the seed: %v", secret.Data)
	}
	generated := w.secret(w.garden, "generated-bucket-b")
	if generated == nil || !slices.Equal(generated.Finalizers, []string{finalizer}) || len(generated.OwnerReferences) != 1 ||
		generated.OwnerReferences[0].UID != "1" {
		t.Fatalf("generated: %+v", generated)
	}

	// An unchanged bucket requests no operation of the extension; changed credentials do.
	extension := emptyExtension(bucket)
	if _, err := w.gardenletRuns(); err != nil {
		t.Fatal(err)
	}
	if err := w.seed.Get(t.Context(), request.NamespacedName, extension); err != nil ||
		extension.Annotations["gardener.cloud/operation"] != "" {
		t.Fatalf("%v %v", extension.Annotations, err)
	}
	secret := w.secret(w.garden, "backup")
	secret.Data["key"] = []byte("other")
	if err := w.garden.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	w.settle()
	w.expect("Reconcile", "Succeeded")
	if secret := w.secret(w.seed, "bucket-b"); string(secret.Data["key"]) != "other" {
		t.Errorf("changed credentials in the seed: %v", secret.Data)
	}

	if err := w.garden.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if result, err := w.gardenletRuns(); err != nil || result.RequeueAfter != requeueDeletion {
		t.Fatalf("%v %v", result, err)
	}
	w.expect("Delete", "Processing")
	for _, run := range []func() (reconcile.Result, error){w.simulatorRuns, w.gardenletRuns} {
		if _, err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.garden.Get(t.Context(), request.NamespacedName, bucket); !apierrors.IsNotFound(err) {
		t.Errorf("the bucket is still there: %v", err)
	}
	if w.secret(w.seed, "bucket-b") != nil || w.secret(w.garden, "generated-bucket-b") != nil ||
		w.secret(w.seed, "generated-bucket-b") != nil {
		t.Error("credentials are left")
	}
	if secret := w.secret(w.garden, "backup"); len(secret.Finalizers) != 0 {
		t.Errorf("credentials: %v", secret.Finalizers)
	}
}

func TestFailureOfTheExtension(t *testing.T) {
	bucket := newBucket()
	bucket.Annotations = map[string]string{injection.AnnotationFail: "once:ERR_INFRA_QUOTA_EXCEEDED"}
	w := newWorld(t, credentials(), bucket)
	if _, err := w.gardenletRuns(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.simulatorRuns(); err == nil {
		t.Fatal("the annotation was not passed on")
	}
	if _, err := w.gardenletRuns(); err != nil {
		t.Fatal(err)
	}
	got := w.expect("Create", "Error")
	if got.Status.LastError == nil || !slices.Equal(got.Status.LastError.Codes, []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED"}) {
		t.Fatalf("%+v", got.Status.LastError)
	}
	if event := <-w.events.Events; !strings.Contains(event, "ReconcileError") {
		t.Error(event)
	}
	if _, err := w.simulatorRuns(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gardenletRuns(); err != nil {
		t.Fatal(err)
	}
	if got := w.expect("Create", "Succeeded"); got.Status.LastError != nil {
		t.Errorf("%+v", got.Status.LastError)
	}
}

func TestStaysWhileInUse(t *testing.T) {
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-x", Name: "e"},
		Spec: corev1beta1.BackupEntrySpec{BucketName: "b"}}
	w := newWorld(t, credentials(), newBucket(), entry)
	w.settle()
	if err := w.garden.Delete(t.Context(), w.bucket()); err != nil {
		t.Fatal(err)
	}
	if result, err := w.gardenletRuns(); err != nil || result.RequeueAfter == 0 {
		t.Fatalf("%v %v", result, err)
	}
	if last := w.expect("Delete", "Pending").Status.LastOperation; !strings.Contains(last.Description, "garden-x/e") {
		t.Error(last.Description)
	}
	if event := <-w.events.Events; !strings.Contains(event, "ResourceReferenced") {
		t.Error(event)
	}
	if w.secret(w.garden, "generated-bucket-b") == nil {
		t.Error("the generated credentials are gone")
	}
}

// The credentials of two buckets have their finalizer until both buckets are deleted.
func TestSharedCredentials(t *testing.T) {
	other := newBucket()
	other.Name, other.UID = "other", "2"
	w := newWorld(t, credentials(), newBucket(), other)
	w.settle()
	if err := w.garden.Delete(t.Context(), w.bucket()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if secret := w.secret(w.garden, "backup"); !slices.Contains(secret.Finalizers, finalizer) {
		t.Fatalf("the finalizers are %v although another bucket has the same credentials", secret.Finalizers)
	}
	other.Status.LastOperation = &corev1beta1.LastOperation{Type: "Delete", State: "Succeeded"}
	if err := w.garden.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := w.gardenlet.releaseCredentials(t.Context(), newBucket(), w.secret(w.garden, "backup")); err != nil {
		t.Fatal(err)
	}
	if secret := w.secret(w.garden, "backup"); len(secret.Finalizers) > 0 {
		t.Errorf("the finalizers are %v although the other bucket is deleted as well", secret.Finalizers)
	}
}

// The reconciler forgets deleted buckets only if their deletion triggers a reconciliation.
func TestDeletionsPass(t *testing.T) {
	if !Changed().Delete(event.DeleteEvent{Object: newBucket()}) {
		t.Error("the deletion of a bucket does not pass")
	}
}

func TestWorkloadIdentity(t *testing.T) {
	bucket := newBucket()
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "security.gardener.cloud/v1alpha1",
		Kind: "WorkloadIdentity", Namespace: "garden", Name: "wi"}
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "wi"}}
	identity.Spec.TargetSystem = securityv1alpha1.TargetSystem{Type: "local", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"x":1}`)}}
	w := newWorld(t, identity, bucket)
	w.settle()
	w.expect("Create", "Succeeded")
	secret := w.secret(w.seed, "bucket-b")
	if string(secret.Data["config"]) != `{"x":1}` || secret.Labels["security.gardener.cloud/purpose"] != "workload-identity-token-requestor" {
		t.Errorf("%+v", secret)
	}
	secret.Data["token"] = []byte("t")
	if err := w.seed.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if after := w.secret(w.seed, "bucket-b"); string(after.Data["token"]) != "t" ||
		after.Annotations["gardener.cloud/timestamp"] != secret.Annotations["gardener.cloud/timestamp"] {
		t.Errorf("%+v", after)
	}
}

func TestOthersAndBrokenBuckets(t *testing.T) {
	w := newWorld(t, newBucket())
	if _, err := w.gardenletRuns(); err == nil ||
		!strings.Contains(w.expect("Create", "Error").Status.LastError.Description, "garden/backup") {
		t.Errorf("without credentials: %v", err)
	}
	before := w.bucket()
	w.gardenlet.SeedName = "other"
	if _, err := w.gardenletRuns(); err != nil || w.bucket().ResourceVersion != before.ResourceVersion {
		t.Errorf("a bucket of another seed was touched: %v", err)
	}
}
