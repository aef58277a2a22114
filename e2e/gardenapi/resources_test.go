package gardenapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestDiscovery(t *testing.T) {
	for _, want := range gardenResources {
		t.Run(want.gvr.Resource, func(t *testing.T) {
			list, err := kube.Discovery().ServerResourcesForGroupVersion(want.gvr.GroupVersion().String())
			must(t, err)
			found := map[string]metav1.APIResource{}
			for _, r := range list.APIResources {
				found[r.Name] = r
			}
			r, ok := found[want.gvr.Resource]
			if !ok {
				t.Fatalf("not served")
			}
			if r.Kind != want.kind || r.Namespaced != want.namespaced || !slices.Equal(r.ShortNames, want.shortNames) {
				t.Errorf("kind %s, namespaced %t, short names %v", r.Kind, r.Namespaced, r.ShortNames)
			}
			for _, verb := range []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} {
				if !slices.Contains(r.Verbs, verb) {
					t.Errorf("no verb %s", verb)
				}
			}
			for _, sub := range []string{"status", "binding", "adminkubeconfig", "viewerkubeconfig", "token", "scale"} {
				if _, has := found[want.gvr.Resource+"/"+sub]; has != want.has(sub) {
					t.Errorf("subresource %s: %t", sub, has)
				}
			}
		})
	}
}

// TestLifeOfEveryResource creates an object of each resource, does with it everything that the API can do, and
// deletes the objects in the opposite order, because they refer to one another.
func TestLifeOfEveryResource(t *testing.T) {
	prepareProject(t, "life")
	objects := validObjects(t, "life")
	for _, obj := range objects {
		r := infoOf(t, obj.GetKind())
		t.Run(r.gvr.Resource, func(t *testing.T) { liveOnce(t, r, obj) })
	}
	for _, obj := range slices.Backward(objects) {
		r := infoOf(t, obj.GetKind())
		t.Run("delete "+r.gvr.Resource, func(t *testing.T) { remove(t, r, obj) })
	}
}

func liveOnce(t *testing.T, r resourceInfo, obj *unstructured.Unstructured) {
	ctx, c := t.Context(), client(obj, r)
	dry, err := c.Create(ctx, obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	if _, err := c.Get(ctx, dry.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run left something: %v", err)
	}
	list, err := c.List(ctx, metav1.ListOptions{})
	must(t, err)
	watcher, err := c.Watch(
		ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=" + obj.GetName()})
	must(t, err)
	defer watcher.Stop()

	made, err := c.Create(ctx, obj, created)
	must(t, err)
	expectEvent(t, watcher, watch.Added)
	if made.GetUID() == "" || made.GetResourceVersion() == "" {
		t.Error("no UID or resource version")
	}
	if _, err := c.Create(ctx, obj, created); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one of the name gives %v", err)
	}

	labelled, err := c.Patch(ctx, made.GetName(), types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"e2e":"patched"}}}`), metav1.PatchOptions{})
	must(t, err)
	expectEvent(t, watcher, watch.Modified)
	if labelled.GetGeneration() != made.GetGeneration() {
		t.Errorf("a label moved the generation from %d to %d", made.GetGeneration(), labelled.GetGeneration())
	}
	stale := made.DeepCopy()
	stale.SetAnnotations(map[string]string{"e2e": "stale"})
	if _, err := c.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version gives %v", err)
	}

	applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(),
		"metadata": map[string]any{"name": obj.GetName(), "annotations": map[string]any{"e2e": "applied"}}}}
	if r.namespaced {
		applied.SetNamespace(obj.GetNamespace())
	}
	after, err := c.Apply(ctx, obj.GetName(), applied, metav1.ApplyOptions{FieldManager: "e2e-apply", Force: true})
	must(t, err)
	if after.GetAnnotations()["e2e"] != "applied" || after.GetLabels()["e2e"] != "patched" {
		t.Errorf("after server-side apply: annotations %v, labels %v", after.GetAnnotations(), after.GetLabels())
	}
	if r.has("status") {
		checkStatus(t, r, after)
	}
}

// checkStatus changes the spec through status and the status through the object, which must both have no effect.
func checkStatus(t *testing.T, r resourceInfo, obj *unstructured.Unstructured) {
	t.Helper()
	ctx, c := t.Context(), client(obj, r)
	patch := []byte(`{"metadata":{"labels":{"through":"status"}},"status":{"observedGeneration":7,"conditions":[]}}`)
	viaObject, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	// Gardener accepts a Gardenlet's status with the object.
	if got, _, _ := unstructured.NestedInt64(viaObject.Object, "status", "observedGeneration"); got == 7 && r.kind != "Gardenlet" {
		t.Error("the status was changed through the object")
	}
	viaStatus, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(
		`{"spec":{"provider":{"type":"changed"},"description":"changed"},"status":{"observedGeneration":8}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	before, _ := json.Marshal(viaObject.Object["spec"])
	after, _ := json.Marshal(viaStatus.Object["spec"])
	if string(before) != string(after) {
		t.Errorf("the spec was changed through the status: %s to %s", before, after)
	}
	if got, found, _ := unstructured.NestedInt64(viaStatus.Object, "status", "observedGeneration"); found && got != 8 {
		t.Errorf("status.observedGeneration is %d", got)
	}
}

func expectEvent(t *testing.T, w watch.Interface, want watch.EventType) {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		if event.Type != want {
			t.Errorf("event %s, expected %s", event.Type, want)
		}
	case <-time.After(waitTimeout):
		t.Errorf("no event %s", want)
	}
}

// remove deletes an object as its user would: with the confirmation if it is needed, and without its finalizers,
// which no controller removes here.
func remove(t *testing.T, r resourceInfo, obj *unstructured.Unstructured) {
	t.Helper()
	ctx, c := t.Context(), client(obj, r)
	patch := fmt.Sprintf(`{"metadata":{"finalizers":null,"annotations":{%q:"true"}}}`, "confirmation.gardener.cloud/deletion")
	_, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	must(t, c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}))
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
}
