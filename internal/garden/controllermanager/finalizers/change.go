package finalizers

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change patches an object if mutate changes it. The patch fails with a conflict if the object has changed since it
// was read.
func change(ctx context.Context, c client.Client, obj client.Object, mutate func()) error {
	before := obj.DeepCopyObject().(client.Object)
	mutate()
	// Finalizers cannot be added to an object that is being deleted; the API server would refuse the whole patch.
	if obj.GetDeletionTimestamp() != nil {
		keepOnly(obj, before.GetFinalizers())
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing labels and finalizers of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func keepOnly(obj client.Object, allowed []string) {
	had := map[string]bool{}
	for _, finalizer := range allowed {
		had[finalizer] = true
	}
	var kept []string
	for _, finalizer := range obj.GetFinalizers() {
		if had[finalizer] {
			kept = append(kept, finalizer)
		}
	}
	obj.SetFinalizers(kept)
}

// labelsOf returns a non-nil copy of the object's labels.
func labelsOf(obj client.Object) map[string]string {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	return labels
}

func with(labels map[string]string, label string) map[string]string {
	labels[label] = "true"
	return labels
}
