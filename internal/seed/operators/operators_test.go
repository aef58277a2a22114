package operators

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func object(k kind, replicas int64) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	obj.SetNamespace("shoot--dev--one")
	obj.SetName("main")
	obj.SetGeneration(3)
	obj.SetAnnotations(map[string]string{"gardener.cloud/operation": "reconcile", "other": "x"})
	return obj
}

// TestStatus: each kind gets the status that says that everything runs, once, and the operation is taken.
func TestStatus(t *testing.T) {
	for _, k := range slices.Concat(slices.Collect(maps.Values(kinds))...) {
		t.Run(k.Kind, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(k.GroupVersionKind, meta.RESTScopeNamespace)
			scheme := runtime.NewScheme()
			scheme.AddKnownTypeWithName(k.GroupVersionKind, &unstructured.Unstructured{})
			obj := object(k, 3)
			clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
			c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(obj).WithStatusSubresource(obj).Build()
			r := &reconciler{c, clock, k}
			read := func() *unstructured.Unstructured {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
					t.Fatal(err)
				}
				now := &unstructured.Unstructured{}
				now.SetGroupVersionKind(k.GroupVersionKind)
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), now); err != nil {
					t.Fatal(err)
				}
				return now
			}
			first := read()
			conditions, _, _ := unstructured.NestedSlice(first.Object, "status", "conditions")
			if len(conditions) != len(k.conditions) {
				t.Errorf("the conditions are %v", conditions)
			}
			for _, condition := range conditions {
				if condition.(map[string]any)["status"] != "True" {
					t.Errorf("condition %v", condition)
				}
			}
			if replicas, _, _ := unstructured.NestedInt64(first.Object, "status", "replicas"); replicas != 3 {
				t.Errorf("%d replicas", replicas)
			}
			if annotations := first.GetAnnotations(); len(annotations) != 1 || annotations["other"] != "x" {
				t.Errorf("the annotations are %v", annotations)
			}
			clock.Step(time.Hour)
			if again := read(); again.GetResourceVersion() != first.GetResourceVersion() {
				t.Error("it is written again without a change")
			}
		})
	}
}

func TestEtcdIsReady(t *testing.T) {
	obj := object(kinds["etcd-druid"][0], 1)
	status := etcdStatus(obj, 1)
	if status["ready"] != true || status["observedGeneration"] != int64(3) || status["readyReplicas"] != int64(1) {
		t.Errorf("the status is %v", status)
	}
}
