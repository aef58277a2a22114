package kit

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteConfirmed sets the annotations that confirm the deletion of an object, and deletes it. It returns nil if the
// object does not exist or is being deleted.
func DeleteConfirmed(ctx context.Context, c client.Client, clock clock.PassiveClock, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	err := Annotate(ctx, c, obj, map[string]string{
		constants.ConfirmationDeletion: "true",
		constants.GardenerTimestamp:    clock.Now().UTC().Format(time.RFC3339Nano),
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirming the deletion of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	if err := c.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Annotate patches annotations into an object.
func Annotate(ctx context.Context, c client.Client, obj client.Object, annotations map[string]string) error {
	before := obj.DeepCopyObject().(client.Object)
	all := maps.Clone(obj.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	obj.SetAnnotations(all)
	return c.Patch(ctx, obj, client.MergeFrom(before))
}
