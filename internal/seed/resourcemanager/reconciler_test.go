package resourcemanager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

type world struct {
	*testing.T
	client.Client
	*Reconciler
}

const two = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: x}
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: x}
`

func newWorld(t *testing.T, class string, objects string) world {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "mr"}}
	resource.Spec.Class, resource.Spec.InjectLabels = ptr.To(class), map[string]string{"in": "jected"}
	resource.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "objects"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "objects"},
		Data: map[string][]byte{"o.yaml": []byte(objects)}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(resource, secret).WithStatusSubresource(resource).Build()
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	w := world{t, c, &Reconciler{Client: c, Reader: c, Shoots: NewShoots(c, clock), Clock: clock}}
	return w
}

func (w world) run() reconcile.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "garden", Name: "mr"}})
	w.must(err)
	return result
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) resource() *resourcesv1alpha1.ManagedResource {
	w.Helper()
	resource := &resourcesv1alpha1.ManagedResource{}
	w.must(w.Client.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "mr"}, resource))
	return resource
}

func (w world) configMap(name string) *corev1.ConfigMap {
	w.Helper()
	found := &corev1.ConfigMap{}
	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: "x", Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return found
}

func (w world) wantConditions(applied, healthy, progressing corev1beta1.ConditionStatus) {
	w.Helper()
	all := w.resource().Status.Conditions
	for kind, want := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: applied, resourcesv1alpha1.ResourcesHealthy: healthy,
		resourcesv1alpha1.ResourcesProgressing: progressing,
	} {
		if got := conditions.Find(all, kind); got.Status != want {
			w.Errorf("%s is %s (%s: %s), not %s", kind, got.Status, got.Reason, got.Message, want)
		}
	}
}

func (w world) setObjects(objects string) {
	w.Helper()
	secret := &corev1.Secret{}
	w.must(w.Client.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "objects"}, secret))
	secret.Data["o.yaml"] = []byte(objects)
	w.must(w.Client.Update(w.Context(), secret))
}

// TestShootsOnly checks that a seed's ManagedResource is left to another resource manager, in its life and when it is deleted.
func TestShootsOnly(t *testing.T) {
	w := newWorld(t, "seed", two)
	w.ShootsOnly = true
	if w.run(); w.configMap("a") != nil || len(w.resource().Finalizers) != 0 {
		t.Errorf("it is handled: %+v", w.resource())
	}
	w.ShootsOnly = false
	w.run()
	w.ShootsOnly = true
	w.must(w.Client.Delete(w.Context(), w.resource()))
	if w.run(); w.configMap("a") == nil || len(w.resource().Finalizers) != 1 {
		t.Errorf("its objects are deleted: %+v", w.resource())
	}
	w.ShootsOnly = false
	if w.run(); w.configMap("a") != nil {
		t.Error("its objects are not deleted by the resource manager of the seed")
	}
}

func TestAppliesAndDeletes(t *testing.T) {
	w := newWorld(t, "seed", two)
	if wait := w.run().RequeueAfter; wait != syncPeriod {
		t.Errorf("looks again after %s", wait)
	}
	w.wantConditions("True", "True", "False")
	a := w.configMap("a")
	if a == nil || a.Data["k"] != "v" || a.Labels["in"] != "jected" || a.Labels["resources.gardener.cloud/managed-by"] != "gardener" ||
		a.Annotations["resources.gardener.cloud/origin"] != "garden/mr" {
		t.Fatalf("applied: %+v", a)
	}
	if got := w.resource().Finalizers; !slices.Equal(got, []string{"resources.gardener.cloud/gardener-resource-manager-seed"}) {
		t.Errorf("finalizers %v", got)
	}
	first, _, _ := strings.Cut(two, "---")
	w.setObjects(first + "---\na: [")
	w.run()
	if w.wantConditions("False", "True", "False"); w.configMap("b") == nil {
		t.Error("an object goes because it cannot be read what there is to be")
	}
	w.setObjects(first)
	w.run()
	if w.configMap("a") == nil || w.configMap("b") != nil || len(w.resource().Status.Resources) != 1 {
		t.Errorf("an object that is no longer wanted stays, or another one goes: %+v", w.resource().Status.Resources)
	}
	w.must(w.Client.Delete(t.Context(), w.resource()))
	w.run()
	if w.configMap("a") != nil {
		t.Error("an object stays when its ManagedResource goes")
	}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "mr"},
		&resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ManagedResource stays: %v", err)
	}
}

// TestInjectsLabelsIntoTemplates: Gardener's gardenlet does not remove claims with a label when it deletes a Shoot.
func TestInjectsLabelsIntoTemplates(t *testing.T) {
	w := newWorld(t, "seed", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a, namespace: x}
spec:
  template: {metadata: {labels: {app: a}}}
  volumeClaimTemplates: [{metadata: {name: one, labels: {app: a}}}, {metadata: {name: two}}]
`)
	w.run()
	set := &appsv1.StatefulSet{}
	w.must(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "x", Name: "a"}, set))
	one, two := set.Spec.VolumeClaimTemplates[0], set.Spec.VolumeClaimTemplates[1]
	for name, test := range map[string]struct{ got, want map[string]string }{
		"the Pods":         {set.Spec.Template.Labels, map[string]string{"app": "a", "in": "jected"}},
		"the first claim":  {one.Labels, map[string]string{"app": "a", "in": "jected"}},
		"the second claim": {two.Labels, map[string]string{"in": "jected"}},
	} {
		if !maps.Equal(test.got, test.want) {
			t.Errorf("labels of %s: %v, not %v", name, test.got, test.want)
		}
	}
}

func TestKeepsObjects(t *testing.T) {
	w := newWorld(t, "seed", two)
	w.run()
	resource := w.resource()
	resource.Spec.KeepObjects = ptr.To(true)
	w.must(w.Client.Update(t.Context(), resource))
	w.must(w.Client.Delete(t.Context(), resource))
	w.run()
	if w.configMap("a") == nil || w.configMap("b") == nil {
		t.Error("an object goes although it was to be kept")
	}
}

func TestWaitsForObjects(t *testing.T) {
	w := newWorld(t, "seed", two)
	w.run()
	b := w.configMap("b")
	b.Finalizers = []string{"gardenlite.dev/test"}
	w.must(w.Client.Update(t.Context(), b))
	w.must(w.Client.Delete(t.Context(), w.resource()))
	if wait := w.run().RequeueAfter; wait != deletionPoll {
		t.Errorf("looks again after %s", wait)
	}
	w.wantConditions("Progressing", "False", "True")
	b = w.configMap("b")
	b.Finalizers = nil
	w.must(w.Client.Update(t.Context(), b))
	w.run()
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "mr"},
		&resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ManagedResource stays: %v", err)
	}
}

func TestSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		class, objects                string
		applied, healthy, progressing corev1beta1.ConditionStatus
	}{
		"nothing":                   {"seed", "", "True", "True", "False"},
		"no object":                 {"seed", "metadata: {name: x}", "False", "True", "False"},
		"not YAML":                  {"seed", "a: [", "False", "True", "False"},
		"deployment without status": {"seed", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}", "True", "False", "True"},
		"skipped": {"seed", `{apiVersion: v1, kind: Pod, metadata: {name: d, annotations: {resources.gardener.cloud/skip-health-check: "true"}}}`,
			"True", "True", "False"},
		"class of others":                         {"shoot", two, "Unknown", "Unknown", "Unknown"},
		"no class in a namespace without a shoot": {"", two, "Unknown", "Unknown", "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.class, test.objects)
			if name == "deployment without status" {
				w.setObjects(test.objects)
			}
			w.run()
			w.wantConditions(test.applied, test.healthy, test.progressing)
		})
	}
}

// TestUnknownKind checks that an object of an unknown kind is reported, also as unhealthy, for the current generation.
func TestUnknownKind(t *testing.T) {
	w := newWorld(t, "seed", two)
	r := *w.Reconciler
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Foo"}, SearchedVersions: []string{"v1"}}
	r.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return missing
		},
	})
	resource := w.resource()
	resource.Generation = 3
	w.must(w.Client.Update(t.Context(), resource))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(resource)}); !meta.IsNoMatchError(err) {
		t.Fatalf("it fails with %v", err)
	}
	w.wantConditions("False", "False", "False")
	status := w.resource().Status
	for kind, want := range map[corev1beta1.ConditionType]string{
		resourcesv1alpha1.ResourcesApplied: `applying ConfigMap x/a of ManagedResource garden/mr: no matches for kind ` +
			`"Foo" in version "example.com/v1"`,
		resourcesv1alpha1.ResourcesHealthy: "ConfigMap x/a is missing.",
	} {
		if got := conditions.Find(status.Conditions, kind).Message; got != want {
			t.Errorf("%s says %q, not %q", kind, got, want)
		}
	}
	if status.ObservedGeneration != 3 {
		t.Errorf("it has observed generation %d", status.ObservedGeneration)
	}
	w.run()
	w.wantConditions("True", "True", "False")
}

// TestNamespaceOfNewKind checks that the references in the status get the namespace of their objects once the API server has
// the kind, whose CustomResourceDefinition may be in the same ManagedResource.
func TestNamespaceOfNewKind(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	w := newWorld(t, "seed", two)
	w.Reconciler.Client = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).Build()
	reference := func(kind, namespace string) resourcesv1alpha1.ObjectReference {
		return resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: "new.dev/v1", Kind: kind,
			Namespace: namespace, Name: "a"}}
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	resource.Status.Resources = []resourcesv1alpha1.ObjectReference{
		reference("Namespaced", ""), reference("Namespaced", "x"), reference("Cluster", "x")}
	if got := w.seed().applied(resource); !slices.EqualFunc(got, resource.Status.Resources, same) {
		t.Errorf("before the API server has the kinds: %v", got)
	}
	version := schema.GroupVersion{Group: "new.dev", Version: "v1"}
	mapper.Add(version.WithKind("Namespaced"), meta.RESTScopeNamespace)
	mapper.Add(version.WithKind("Cluster"), meta.RESTScopeRoot)
	want := []resourcesv1alpha1.ObjectReference{
		reference("Namespaced", "default"), reference("Namespaced", "x"), reference("Cluster", "")}
	if got := w.seed().applied(resource); !slices.EqualFunc(got, want, same) {
		t.Errorf("once it has them: %v", got)
	}
}

// TestUnhealthyDeployment checks that the reason is reported for which a Deployment itself says that it is unhealthy.
func TestUnhealthyDeployment(t *testing.T) {
	obj := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: x}
status:
  conditions:
  - {type: Available, status: "False", message: Too few.}
  - {type: ReplicaFailure, status: "True", message: Pods are forbidden.}
`), &obj.Object)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := unhealthy(obj), "the condition Available is not True: Too few. Pods are forbidden."; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
}

// TestOrigin checks that an event of an object triggers its ManagedResource.
func TestOrigin(t *testing.T) {
	w := newWorld(t, "seed", two)
	w.run()
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "garden", Name: "mr"}}}
	if got := ofOrigin(t.Context(), w.configMap("a")); !slices.Equal(got, want) {
		t.Errorf("it leads to %v", got)
	}
	if got := ofOrigin(t.Context(), &corev1.ConfigMap{}); len(got) > 0 {
		t.Errorf("an object of no ManagedResource leads to %v", got)
	}
}
