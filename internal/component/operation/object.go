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

// Patch writes what mutate changes in an object except its status, if it changes anything. A change of the finalizers
// fails with a conflict if the object has changed since it was read.
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

// PatchStatus writes what mutate changes in the status of an object, if it changes anything.
func PatchStatus[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	return WriteStatus(ctx, c, obj, before)
}

// PatchStatusExclusively is PatchStatus, but fails with a conflict if the object has changed since it was read.
func PatchStatusExclusively[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	return writeStatus(ctx, c, obj, before, exclusively(before))
}

// WriteStatus writes the changes in the status of an object since before, if there are any.
func WriteStatus(ctx context.Context, c client.Client, obj, before client.Object) error {
	return writeStatus(ctx, c, obj, before, client.MergeFrom(before))
}

func writeStatus(ctx context.Context, c client.Client, obj, before client.Object, patch client.Patch) error {
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Status().Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("writing the status of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Delete deletes an object, unless it is being deleted already or does not exist.
func Delete(ctx context.Context, c client.Client, obj client.Object, options ...client.DeleteOption) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := c.Delete(ctx, obj, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// AddFinalizer adds a finalizer to an object.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	if err := Patch(ctx, c, obj, func(obj client.Object) { controllerutil.AddFinalizer(obj, finalizer) }); err != nil {
		return fmt.Errorf("adding the finalizer %s: %w", finalizer, err)
	}
	return nil
}

// RemoveFinalizers removes finalizers from an object. It returns no error if the object no longer exists.
func RemoveFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizers ...string) error {
	err := Patch(ctx, c, obj, func(obj client.Object) {
		for _, finalizer := range finalizers {
			controllerutil.RemoveFinalizer(obj, finalizer)
		}
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers %v: %w", finalizers, err)
	}
	return nil
}

// exclusively returns a merge patch with optimistic locking: a merge patch of a list replaces the whole list.
func exclusively(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// DeletedObjects is the set of objects whose last finalizer was removed. A cache may still contain such an object for a while,
// but a write to it would fail, or write to an object that must not be written any more.
type DeletedObjects struct{ uids sync.Map }

// Read reads the object of a request, and reports whether it exists. One in the set does not exist any more.
func (d *DeletedObjects) Read(ctx context.Context, c client.Reader, key client.ObjectKey, obj client.Object) (bool, error) {
	if err := c.Get(ctx, key, obj); err != nil {
		d.uids.Delete(key)
		return false, client.IgnoreNotFound(err)
	}
	uid, deleted := d.uids.Load(key)
	return !deleted || uid != obj.GetUID(), nil
}

// RemoveFinalizers removes the last finalizers of an object, and adds it to the set.
func (d *DeletedObjects) RemoveFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizers ...string) error {
	if err := RemoveFinalizers(ctx, c, obj, finalizers...); err != nil {
		return err
	}
	d.uids.Store(client.ObjectKeyFromObject(obj), obj.GetUID())
	return nil
}
