package operation

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Patch writes what mutate changes in an object beside its status, if it changes anything.
func Patch[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	patch := client.MergeFrom(before)
	if !slices.Equal(before.GetFinalizers(), obj.GetFinalizers()) {
		patch = exclusively(before)
	}
	if err := c.Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("writing %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// PatchStatus writes what mutate changes in an object's status, if it changes anything.
func PatchStatus[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	return WriteStatus(ctx, c, obj, before)
}

// PatchStatusExclusively is PatchStatus that fails with a conflict if anything in the object has been written since it was read.
func PatchStatusExclusively[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Status().Patch(ctx, obj, exclusively(before)); err != nil {
		return fmt.Errorf("writing the status of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// WriteStatus writes what has changed in an object's status since before, if anything has.
func WriteStatus(ctx context.Context, c client.Client, obj, before client.Object) error {
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Status().Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// AddFinalizer puts a finalizer on an object.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	before := obj.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(obj, finalizer) {
		return nil
	}
	if err := c.Patch(ctx, obj, exclusively(before)); err != nil {
		return fmt.Errorf("adding the finalizer %s to %T %s: %w", finalizer, obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// RemoveFinalizers takes finalizers from an object. One that is gone is all right.
func RemoveFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizers ...string) error {
	before := obj.DeepCopyObject().(client.Object)
	removed := false
	for _, finalizer := range finalizers {
		removed = controllerutil.RemoveFinalizer(obj, finalizer) || removed
	}
	if !removed {
		return nil
	}
	if err := c.Patch(ctx, obj, exclusively(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers %v from %T %s: %w", finalizers, obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// exclusively is a patch that fails if the object has changed in between: a patch of a list replaces all of it.
func exclusively(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Gone are objects that had their last finalizer removed. A cache may have one for a little longer, and to write to it then
// would be to write to what is not there, or may not be written any more.
type Gone struct{ uids sync.Map }

// Mark says that an object is gone.
func (g *Gone) Mark(obj client.Object) { g.uids.Store(client.ObjectKeyFromObject(obj), obj.GetUID()) }

// Is says whether an object is gone. Another one of its name is not.
func (g *Gone) Is(obj client.Object) bool {
	uid, marked := g.uids.Load(client.ObjectKeyFromObject(obj))
	return marked && uid == obj.GetUID()
}

// Forget is for when the cache does not have the object any more.
func (g *Gone) Forget(key client.ObjectKey) { g.uids.Delete(key) }
