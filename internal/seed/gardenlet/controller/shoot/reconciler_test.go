package shoot

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const id = "shoot--x--y"

var key = client.ObjectKey{Namespace: "garden-x", Name: "y"}

// world is a garden with a Shoot, and the seed that it is on.
type world struct {
	*testing.T
	garden, seed client.Client
	clock        *clocktesting.FakeClock
	events       *events.FakeRecorder
	reconciler   *Reconciler
	// inside is a client for the shoot's API.
	inside client.Client
	// objects has the metadata of the encrypted objects in the shoot.
	objects *metadatafake.FakeMetadataClient
	// before, if not nil, is called before each write of the reconciler, with the cluster, the verb and the object.
	before func(cluster, verb string, obj client.Object) error
	// simulating is true while the world itself writes.
	simulating bool
	// fails maps the kinds of extension resources to the errors with which their extensions fail.
	fails map[string]*corev1beta1.LastError
	// wrote records the reconciler's writes in the seed.
	wrote []string
	mu    sync.Mutex
	// told records the last operations that were written into the Shoot's status.
	told []corev1beta1.LastOperation
}

func aShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u", Generation: 2},
		Spec: corev1beta1.ShootSpec{
			SeedName: ptr.To("a"), CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "p"},
			CredentialsBindingName: ptr.To("c"), Kubernetes: corev1beta1.Kubernetes{Version: "1.36.0"},
			Provider: corev1beta1.Provider{Type: "t", Workers: []corev1beta1.Worker{{
				Name: "p1", Minimum: 1, Maximum: 2,
				Machine: corev1beta1.Machine{Type: "m", Image: &corev1beta1.ShootMachineImage{Name: "os", Version: ptr.To("1")}},
			}}},
			Networking: &corev1beta1.Networking{Type: ptr.To("n"), Nodes: ptr.To("10.1.0.0/16"), Pods: ptr.To("10.2.0.0/16"),
				Services: ptr.To("10.3.0.0/16")},
			Extensions: []corev1beta1.Extension{{Type: "own"}, {Type: "unwanted", Disabled: ptr.To(true)}},
		},
	}
	for _, change := range change {
		change(shoot)
	}
	return shoot
}

func aSeed() *corev1beta1.Seed {
	return &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "seed-a", Generation: 1},
		Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "st", Zones: []string{"z1", "z2", "z3", "z4"}},
			Backup: &corev1beta1.Backup{Provider: "b"}},
		Status: corev1beta1.SeedStatus{Gardener: &corev1beta1.Gardener{Name: "me", Version: "v1"}, ObservedGeneration: 1,
			Conditions: []corev1beta1.Condition{
				{Type: corev1beta1.GardenletReady, Status: "True"}, {Type: corev1beta1.SeedSystemComponentsHealthy, Status: "True"},
			}},
	}
}

func aBucket(name string) *corev1beta1.BackupBucket {
	return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1beta1.BackupBucketStatus{
		LastOperation: &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded"},
	}}
}

// scheme has only the kinds that are used: creating a client for all of Kubernetes takes most of a test's time.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, corev1beta1.AddToScheme,
		extensionsv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, operationsv1alpha1.AddToScheme} {
		_ = add(scheme) // of types that are compiled in
	}
	return scheme
})

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := scheme()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	for _, kind := range []string{"auto", "unwanted"} {
		registration.Spec.Resources = append(registration.Spec.Resources,
			corev1beta1.ControllerResource{Kind: "Extension", Type: kind, AutoEnable: []corev1beta1.ClusterType{"shoot"}})
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(10000)}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&corev1beta1.Shoot{}, &corev1beta1.BackupEntry{}).WithObjects(objects...).WithObjects(registration,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{"project.gardener.cloud/name": "x"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"},
			Data: map[string]string{"cluster-identity": "garden"}},
		aBucket("seed-a"), aBucket("seed-b"),
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1beta1.CloudProfileSpec{Type: "t"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "cloud"}, Data: map[string][]byte{"user": []byte("me")}},
		&securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "c"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: key.Namespace, Name: "cloud"}},
	).WithInterceptorFuncs(w.watched("garden")).Build()
	w.seed = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(w.seedStatuses()...).WithInterceptorFuncs(
		w.watched("seed")).Build()
	w.inside = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(w.watched("shoot")).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}).Build()
	w.objects = encryptedObjects(t)
	w.restart()
	return w
}

func (w *world) reconcile() (time.Duration, error) {
	w.Helper()
	result, err := w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
	return result.RequeueAfter, err
}

func (w *world) must(after time.Duration) *corev1beta1.Shoot {
	w.Helper()
	if got, err := w.reconcile(); err != nil || got != after {
		w.Fatalf("reconciling: again after %s, want %s: %v", got, after, err)
	}
	return w.shoot()
}

// shoot returns the Shoot, nil if it is gone.
func (w *world) shoot() *corev1beta1.Shoot {
	w.Helper()
	shoot := &corev1beta1.Shoot{}
	if err := w.garden.Get(w.Context(), key, shoot); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.Fatal(err)
	}
	return shoot
}

func (w *world) change(mutate func(*corev1beta1.Shoot)) {
	w.Helper()
	shoot := w.shoot()
	mutate(shoot)
	if err := w.garden.Status().Update(w.Context(), shoot.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	now := w.shoot()
	now.Annotations, now.Finalizers, now.Spec, now.Generation = shoot.Annotations, shoot.Finalizers, shoot.Spec, shoot.Generation
	if err := w.garden.Update(w.Context(), now); err != nil {
		w.Fatal(err)
	}
}

func (w *world) inSeed() (namespace *corev1.Namespace, cluster *extensionsv1alpha1.Cluster) {
	w.Helper()
	namespace, cluster = &corev1.Namespace{}, &extensionsv1alpha1.Cluster{}
	for _, obj := range []client.Object{namespace, cluster} {
		if err := w.seed.Get(w.Context(), client.ObjectKey{Name: id}, obj); client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
	}
	return namespace, cluster
}

func (w *world) expect(last *corev1beta1.LastOperation, t, state string, percent int32, says string) {
	w.Helper()
	if last == nil || string(last.Type) != t || string(last.State) != state || last.Progress != percent ||
		!strings.Contains(last.Description, says) {
		w.Errorf("last operation %+v, want %s %s %d %% %q", last, t, state, percent, says)
	}
}

func TestCreate(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.expect(w.must(requeueWaiting).Status.LastOperation, "Create", "Processing", w.shoot().Status.LastOperation.Progress, "Waiting until")
	s := w.settle().Status
	w.expect(s.LastOperation, "Create", "Succeeded", 100, "successfully reconciled")
	if s.TechnicalID != id || s.UID != "u" || *s.ClusterIdentity != id+"-u-garden" || *s.SeedName != "a" ||
		s.ObservedGeneration != 2 || s.Gardener.Name != "me" || s.RetryCycleStartTime != nil {
		t.Errorf("status %+v", s)
	}
	if !slices.Equal(w.shoot().Finalizers, []string{"gardener"}) {
		t.Errorf("finalizers %v", w.shoot().Finalizers)
	}
	namespace, cluster := w.inSeed()
	var labels []string
	for label, value := range namespace.Labels {
		labels = append(labels, label+"="+value)
	}
	if slices.Sort(labels); !slices.Equal(labels, []string{
		"backup.gardener.cloud/provider=b", "extensions.gardener.cloud/auto=true", "extensions.gardener.cloud/own=true",
		"gardener.cloud/role=shoot",
		"high-availability-config.resources.gardener.cloud/consider=true", "networking.shoot.gardener.cloud/provider=n",
		"pod-security.kubernetes.io/enforce=privileged", "seed.gardener.cloud/provider=st", "shoot.gardener.cloud/provider=t",
	}) || namespace.Annotations["shoot.gardener.cloud/uid"] != "u" {
		t.Errorf("namespace %v %v", labels, namespace.Annotations)
	}
	in := &corev1beta1.Shoot{}
	if err := json.Unmarshal(cluster.Spec.Shoot.Raw, in); err != nil || in.Kind != "Shoot" ||
		in.APIVersion != "core.gardener.cloud/v1beta1" || in.Status.UID != "u" || in.Status.TechnicalID != id {
		t.Errorf("shoot in the Cluster: %v %s", err, cluster.Spec.Shoot.Raw)
	}
	if len(w.events.Events) != 2 {
		t.Errorf("%d events", len(w.events.Events))
	}
	// An unchanged Shoot causes no writes, and a namespace that is gone from the seed is created again.
	written, told := len(w.wrote), len(w.told)
	w.must(time.Hour)
	if len(w.wrote) != written || len(w.told) != told {
		t.Errorf("wrote %v", w.wrote[written:])
	}
	if err := w.seed.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if namespace, _ := w.inSeed(); namespace.Name == "" {
		t.Error("the namespace has not come back")
	}
}

func TestNamespacedCloudProfile(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile.Kind, s.Spec.CloudProfile.Name = "NamespacedCloudProfile", "np"
	}),
		&corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "np"},
			Status: corev1beta1.NamespacedCloudProfileStatus{CloudProfileSpec: corev1beta1.CloudProfileSpec{Type: "merged"}}})
	w.settle()
	_, cluster := w.inSeed()
	profile := &corev1beta1.CloudProfile{}
	if err := json.Unmarshal(cluster.Spec.CloudProfile.Raw, profile); err != nil || profile.Kind != "CloudProfile" ||
		profile.Namespace != key.Namespace || profile.Spec.Type != "merged" {
		t.Errorf("%v %s", err, cluster.Spec.CloudProfile.Raw)
	}
}

func TestLeftAlone(t *testing.T) {
	for name, shoot := range map[string]*corev1beta1.Shoot{
		"no seed":    aShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }),
		"other seed": aShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") }),
		"moves here": aShoot(func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("b") }),
		"failed": aShoot(func(s *corev1beta1.Shoot) {
			s.Status.LastOperation, s.Status.ObservedGeneration, s.Status.Gardener = &corev1beta1.LastOperation{State: "Failed"},
				2, corev1beta1.Gardener{Version: "v1"}
		}),
	} {
		w := newWorld(t, shoot, aSeed())
		if now := w.must(0); len(now.Finalizers) > 0 || len(w.told) > 0 {
			t.Errorf("%s: %+v", name, now)
		}
		if namespace, _ := w.inSeed(); namespace.Name != "" {
			t.Errorf("%s: has a namespace", name)
		}
	}
}

func TestSeedNotReady(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1beta1.Seed)
		says   string
	}{
		"other gardenlet":  {func(s *corev1beta1.Seed) { s.Status.Gardener.Version = "v0" }, "not looked after"},
		"new":              {func(s *corev1beta1.Seed) { s.Status.Gardener = nil }, "not looked after"},
		"old generation":   {func(s *corev1beta1.Seed) { s.Generation = 2 }, "generation 1 of 2"},
		"condition":        {func(s *corev1beta1.Seed) { s.Status.Conditions[1].Status = "False" }, "SeedSystemComponentsHealthy"},
		"condition absent": {func(s *corev1beta1.Seed) { s.Status.Conditions = nil }, "GardenletReady"},
	} {
		seed := aSeed()
		test.change(seed)
		w := newWorld(t, aShoot(), seed)
		w.must(requeueSeed)
		w.expect(w.must(requeueSeed).Status.LastOperation, "Create", "Error", 0, test.says)
		if len(w.told) != 1 || w.shoot().Status.UID != "" {
			t.Errorf("%s: told %d times", name, len(w.told))
		}
	}
	seed := aSeed()
	seed.Status.Conditions[1].Status = "Progressing" // after it was reconciled
	w := newWorld(t, aShoot(), seed)
	if _, err := w.reconcile(); err != nil || w.shoot().Status.LastOperation.State == "Error" {
		t.Errorf("%v, %+v", err, w.shoot().Status.LastOperation)
	}
	seed = aSeed()
	seed.Annotations = map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}
	if w := newWorld(t, aShoot(), seed); w.must(time.Hour).Status.LastOperation != nil {
		t.Error("reconciled although it is stopped")
	}
}

func TestFailure(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.before = func(_, _ string, obj client.Object) error {
		if _, is := obj.(*extensionsv1alpha1.Cluster); is {
			return errors.New("no room")
		}
		return nil
	}
	if _, err := w.reconcile(); err == nil {
		t.Fatal("no error")
	}
	s := w.shoot().Status
	w.expect(s.LastOperation, "Create", "Error", 0, "no room Operation will be retried.")
	if len(s.LastErrors) != 1 || *s.LastErrors[0].TaskID != "Deploying Cluster resource to Seed" || s.RetryCycleStartTime == nil {
		t.Errorf("status %+v", s)
	}
	w.clock.Step(retryDuration + time.Second)
	if _, err := w.reconcile(); err != nil {
		t.Fatalf("tried again after all: %v", err)
	}
	w.expect(w.shoot().Status.LastOperation, "Create", "Failed", 0, "no room")
	w.must(0) // no retry was requested
	w.before = nil
	shoot := w.requestOperation("retry;maintain")
	w.expect(shoot.Status.LastOperation, "Create", "Succeeded", 100, "")
	if len(shoot.Status.LastErrors) > 0 || shoot.Annotations["gardener.cloud/operation"] != "maintain" {
		t.Errorf("errors %v, annotations %v", shoot.Status.LastErrors, shoot.Annotations)
	}
}

// TestPrepareFailure checks that an invalid Shoot can be deleted at once: without a status.uid there is nothing in the
// seed.
func TestPrepareFailure(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) { s.Spec.CloudProfile.Name = "missing" }))
	if _, err := w.reconcile(); err == nil {
		t.Fatal("no error")
	}
	w.expect(w.shoot().Status.LastOperation, "Create", "Error", 0, "CloudProfile missing")
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	if w.must(0) != nil {
		t.Error("the Shoot is there")
	}
	w.expect(&w.told[len(w.told)-1], "Delete", "Succeeded", 100, "")
}
