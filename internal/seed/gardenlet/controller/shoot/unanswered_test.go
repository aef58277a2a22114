package shoot

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// TestUnanswered checks what a Shoot says about an extension resource whose controller does not begin.
func TestUnanswered(t *testing.T) {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "reg"}, Spec: corev1beta1.ControllerRegistrationSpec{
		Resources: []corev1beta1.ControllerResource{{Kind: "Infrastructure", Type: "t"}}}}
	installation := func(change ...func(*corev1beta1.ControllerInstallation)) *corev1beta1.ControllerInstallation {
		i := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "inst"}, Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "reg"}, SeedRef: &corev1.ObjectReference{Name: "a"}}}
		for _, c := range change {
			c(i)
		}
		return i
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-inst", Name: "d"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.com/i:v1"}}
	deployment.Status.ReadyReplicas = 1
	infrastructure := func(change ...func(*extensionsv1alpha1.Infrastructure)) *extensionsv1alpha1.Infrastructure {
		i := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "x",
			Annotations: map[string]string{"gardener.cloud/operation": "reconcile", "gardener.cloud/timestamp": "2030-01-01T00:00:00Z"}}}
		i.Spec.Type = "t"
		for _, c := range change {
			c(i)
		}
		return i
	}
	answered := func(i *extensionsv1alpha1.Infrastructure) {
		i.Status.LastOperation = &corev1beta1.LastOperation{LastUpdateTime: metav1.Date(2029, 12, 31, 0, 0, 0, 0, time.UTC)}
	}
	begun := func(i *extensionsv1alpha1.Infrastructure) {
		delete(i.Annotations, "gardener.cloud/operation")
		i.Status.LastOperation = &corev1beta1.LastOperation{LastUpdateTime: metav1.Date(2030, 1, 1, 0, 0, 1, 0, time.UTC)}
	}
	waits := flow.Pending("it waits")
	for name, test := range map[string]struct {
		garden, seed []client.Object
		of           *extensionsv1alpha1.Infrastructure
		program      string
		after        time.Duration
		err          error
		want         string
	}{
		"soon":          {of: infrastructure(), after: time.Second, err: waits, want: "it waits"},
		"begun":         {of: infrastructure(begun), after: time.Minute, err: waits, want: "it waits"},
		"failed":        {of: infrastructure(), after: time.Minute, err: errors.New("it failed"), want: "it failed"},
		"no controller": {of: infrastructure(), after: time.Minute, err: waits, want: "no ControllerInstallation of seed a is for it; it has never answered"},
		"of last year":  {of: infrastructure(answered), after: time.Minute, err: waits, want: "it last answered at 2029-12-31T00:00:00Z"},
		"by hand": {garden: []client.Object{registration, installation()}, of: infrastructure(), after: time.Minute, err: waits,
			want: "Infrastructure " + id + "/x of type t waits for its controller: ControllerInstallation inst has no Deployment"},
		"of another seed": {garden: []client.Object{registration, installation(func(i *corev1beta1.ControllerInstallation) { i.Spec.SeedRef.Name = "b" })},
			of: infrastructure(), after: time.Minute, err: waits, want: "no ControllerInstallation of seed a is for it"},
		"not installed": {garden: []client.Object{registration, installation(func(i *corev1beta1.ControllerInstallation) {
			i.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationValid, Status: "False", Message: "no chart"}}
		})}, of: infrastructure(), after: time.Minute, err: waits, want: "ControllerInstallation inst is not Valid: no chart"},
		"simulated": {garden: []client.Object{registration, installation()}, seed: []client.Object{deployment}, of: infrastructure(),
			after: time.Minute, err: waits, want: `Deployment extension-inst/d has 1 ready Pods, whose container c is simulated: "gardenlite image run example.com/i:v1 PROGRAM"`},
		"process": {garden: []client.Object{registration, installation()}, seed: []client.Object{deployment}, of: infrastructure(),
			program: "/bin/p", after: time.Minute, err: waits, want: "whose container c is the process /bin/p"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.garden...)
			w.reconciler.Program = func(string) string { return test.program }
			for _, obj := range append(test.seed, test.of) {
				if err := w.seed.Create(t.Context(), obj.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.seed.Status().Update(t.Context(), withVersion(t, w, test.of)); err != nil {
				t.Fatal(err)
			}
			for _, obj := range test.seed {
				if err := w.seed.Status().Update(t.Context(), withVersion(t, w, obj)); err != nil {
					t.Fatal(err)
				}
			}
			w.clock.Step(test.after)
			b := &botanist{Reconciler: w.reconciler}
			err := b.explain(t.Context(), "Infrastructure", test.of, test.err)
			if !strings.Contains(err.Error(), test.want) || flow.IsPending(err) != flow.IsPending(test.err) {
				t.Errorf("it says %q, want %q", err, test.want)
			}
		})
	}
}

// withVersion returns an object with the resource version that it has in the seed.
func withVersion(t *testing.T, w *world, obj client.Object) client.Object {
	t.Helper()
	current, changed := obj.DeepCopyObject().(client.Object), obj.DeepCopyObject().(client.Object)
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(obj), current); err != nil {
		t.Fatal(err)
	}
	changed.SetResourceVersion(current.GetResourceVersion())
	return changed
}
