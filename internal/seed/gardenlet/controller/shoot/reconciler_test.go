package shoot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	// seedWrite, if there is one, comes before something is created in the seed.
	seedWrite func(client.Object) error
	// seedDelete, if there is one, comes before something is deleted there.
	seedDelete func() error
	// told are the last operations that were written.
	told []corev1beta1.LastOperation
}

func aShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u", Generation: 2},
		Spec: corev1beta1.ShootSpec{
			SeedName: ptr.To("a"), CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "p"},
			Provider: corev1beta1.Provider{Type: "t"}, Networking: &corev1beta1.Networking{Type: ptr.To("n")},
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
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "st", Zones: []string{"z1", "z2", "z3", "z4"}}, Backup: &corev1beta1.Backup{Provider: "b"}},
		Status: corev1beta1.SeedStatus{Gardener: &corev1beta1.Gardener{Name: "me", Version: "v1"}, ObservedGeneration: 1, Conditions: []corev1beta1.Condition{
			{Type: corev1beta1.GardenletReady, Status: "True"}, {Type: corev1beta1.SeedSystemComponentsHealthy, Status: "True"},
		}},
	}
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	for _, kind := range []string{"auto", "unwanted"} {
		registration.Spec.Resources = append(registration.Spec.Resources,
			corev1beta1.ControllerResource{Kind: "Extension", Type: kind, AutoEnable: []corev1beta1.ClusterType{"shoot"}})
	}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(100)}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.Shoot{}).WithObjects(objects...).WithObjects(registration,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{"project.gardener.cloud/name": "x"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}, Data: map[string]string{"cluster-identity": "garden"}},
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1beta1.CloudProfileSpec{Type: "t"}},
	).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if last := obj.(*corev1beta1.Shoot).Status.LastOperation; last != nil {
			w.told = append(w.told, *last)
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}).Build()
	w.seed = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if w.seedWrite != nil {
				if err := w.seedWrite(obj); err != nil {
					return err
				}
			}
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if w.seedDelete != nil {
				if err := w.seedDelete(); err != nil {
					return err
				}
			}
			return c.Delete(ctx, obj, opts...)
		},
	}).Build()
	w.reconciler = &Reconciler{
		GardenClient: w.garden, GardenReader: w.garden, SeedClient: w.seed, SeedReader: w.seed, Clock: w.clock, SeedName: "a",
		Recorder: w.events, Identity: &corev1beta1.Gardener{Name: "me", Version: "v1"},
	}
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

// shoot is the Shoot, nil if it is gone.
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
	if last == nil || string(last.Type) != t || string(last.State) != state || last.Progress != percent || !strings.Contains(last.Description, says) {
		w.Errorf("last operation %+v, want %s %s %d %% %q", last, t, state, percent, says)
	}
}

func TestFirstStep(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	s := w.must(time.Hour).Status
	w.expect(s.LastOperation, "Create", "Processing", firstStep, "does not make control planes")
	if s.TechnicalID != id || s.UID != "u" || *s.ClusterIdentity != id+"-u-garden" || *s.SeedName != "a" || s.ObservedGeneration != 2 || s.Gardener.Name != "me" || s.RetryCycleStartTime != nil {
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
		"backup.gardener.cloud/provider=b", "extensions.gardener.cloud/auto=true", "extensions.gardener.cloud/own=true", "gardener.cloud/role=shoot",
		"high-availability-config.resources.gardener.cloud/consider=true", "networking.shoot.gardener.cloud/provider=n",
		"pod-security.kubernetes.io/enforce=privileged", "seed.gardener.cloud/provider=st", "shoot.gardener.cloud/provider=t",
	}) || namespace.Annotations["shoot.gardener.cloud/uid"] != "u" {
		t.Errorf("namespace %v %v", labels, namespace.Annotations)
	}
	in := &corev1beta1.Shoot{}
	if err := json.Unmarshal(cluster.Spec.Shoot.Raw, in); err != nil || in.Kind != "Shoot" || in.APIVersion != "core.gardener.cloud/v1beta1" || in.Status.UID != "u" || in.Status.TechnicalID != id {
		t.Errorf("shoot in the Cluster: %v %s", err, cluster.Spec.Shoot.Raw)
	}
	// Once more changes nothing, and what has gone from the seed comes back.
	written := len(w.told)
	if err := w.seed.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.must(time.Hour)
	if namespace, _ := w.inSeed(); namespace.Name == "" || len(w.told) != written {
		t.Errorf("namespace %q, told %+v", namespace.Name, w.told[written:])
	}
	if written > 2 || len(w.events.Events) != 1 {
		t.Errorf("%d writes of the status, %d events", written, len(w.events.Events))
	}
}

func TestNamespacedCloudProfile(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile.Kind, s.Spec.CloudProfile.Name = "NamespacedCloudProfile", "np"
	}),
		&corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "np"},
			Status: corev1beta1.NamespacedCloudProfileStatus{CloudProfileSpec: corev1beta1.CloudProfileSpec{Type: "merged"}}})
	w.must(time.Hour)
	_, cluster := w.inSeed()
	profile := &corev1beta1.CloudProfile{}
	if err := json.Unmarshal(cluster.Spec.CloudProfile.Raw, profile); err != nil || profile.Kind != "CloudProfile" || profile.Namespace != key.Namespace || profile.Spec.Type != "merged" {
		t.Errorf("%v %s", err, cluster.Spec.CloudProfile.Raw)
	}
}

func TestLeftAlone(t *testing.T) {
	for name, shoot := range map[string]*corev1beta1.Shoot{
		"no seed":    aShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }),
		"other seed": aShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") }),
		"moves here": aShoot(func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("b") }),
		"moves away": aShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = ptr.To("b"), ptr.To("a") }),
		"failed": aShoot(func(s *corev1beta1.Shoot) {
			s.Status.LastOperation, s.Status.ObservedGeneration, s.Status.Gardener = &corev1beta1.LastOperation{State: "Failed"}, 2, corev1beta1.Gardener{Version: "v1"}
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
		w.must(DefaultSeedWait)
		w.expect(w.must(DefaultSeedWait).Status.LastOperation, "Create", "Error", 0, test.says)
		if len(w.told) != 1 || w.shoot().Status.UID != "" {
			t.Errorf("%s: told %d times", name, len(w.told))
		}
	}
	seed := aSeed()
	seed.Annotations = map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}
	if w := newWorld(t, aShoot(), seed); w.must(time.Hour).Status.LastOperation != nil {
		t.Error("reconciled although it is stopped")
	}
}

func TestFailure(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.seedWrite = func(obj client.Object) error {
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
	w.clock.Step(DefaultRetryDuration + time.Second)
	if _, err := w.reconcile(); err != nil {
		t.Fatalf("tried again after all: %v", err)
	}
	w.expect(w.shoot().Status.LastOperation, "Create", "Failed", 0, "no room")
	w.must(0) // nobody has asked for it
	w.seedWrite = nil
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation, s.Annotations = 3, map[string]string{"gardener.cloud/operation": "retry;rotate-ssh-keypair"}
	})
	shoot := w.must(time.Hour)
	w.expect(shoot.Status.LastOperation, "Create", "Processing", firstStep, "")
	if len(shoot.Status.LastErrors) > 0 || shoot.Annotations["gardener.cloud/operation"] != "rotate-ssh-keypair" {
		t.Errorf("errors %v, annotations %v", shoot.Status.LastErrors, shoot.Annotations)
	}
}

// TestPrepareFailure: without a status.uid there is nothing in the seed, so a wrong Shoot can be deleted at once.
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
