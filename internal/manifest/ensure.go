package manifest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

const (
	// writers is how many objects are written in parallel.
	writers = 8
	// ensureRetry and ensureTimeout bound the retries while a namespace is missing: a new API server creates its own
	// namespaces only after it has become ready.
	ensureRetry   = 20 * time.Millisecond
	ensureTimeout = 30 * time.Second
)

// ensureAll ensures objects in parallel. They must not depend on each other.
func ensureAll(ctx context.Context, client dynamic.Interface, objects []Object) error {
	existing, err := listAll(ctx, client, objects)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, obj := range objects {
		if current := existing[keyOf(obj.Unstructured)]; current != nil &&
			apiequality.Semantic.DeepEqual(current.Object, merge(current, obj.Unstructured).Object) {
			continue // after a restart, there is nothing to write
		}
		group.Go(func() error { return ensure(ctx, client, obj) })
	}
	return group.Wait()
}

// listAll lists the existing objects of the kinds of objects, with one request for each kind and namespace.
func listAll(ctx context.Context, client dynamic.Interface, objects []Object) (map[string]*unstructured.Unstructured, error) {
	existing := map[string]*unstructured.Unstructured{}
	listed := map[string]bool{}
	for _, obj := range objects {
		kindInNamespace := obj.GroupVersionKind().String() + " " + obj.GetNamespace()
		if listed[kindInNamespace] {
			continue
		}
		listed[kindInNamespace] = true
		// The watch cache may be behind: ensure reads the object again before it updates it.
		list, err := resourceOf(client, obj).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("listing what there is of %s: %w", obj.GetKind(), err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			item.SetGroupVersionKind(obj.GroupVersionKind()) // the items of some lists have none
			existing[keyOf(item)] = item
		}
	}
	return existing, nil
}

func keyOf(obj *unstructured.Unstructured) string {
	return obj.GroupVersionKind().String() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// ensure creates an object, or updates the existing one. It keeps what others have added: labels, annotations, keys
// of a ConfigMap, and the rules of an aggregated role, which a controller writes.
func ensure(ctx context.Context, client dynamic.Interface, obj Object) error {
	return retryWhileMissing(ctx, obj, func(ctx context.Context) error {
		objects := resourceOf(client, obj)
		_, err := objects.Create(ctx, obj.Unstructured, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		current, err := objects.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		wanted := merge(current, obj.Unstructured)
		if apiequality.Semantic.DeepEqual(current.Object, wanted.Object) {
			return nil
		}
		_, err = objects.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
}

// CreateMissing creates the objects that do not exist, and leaves the others alone.
func CreateMissing(ctx context.Context, client dynamic.Interface, objects []Object) error {
	for _, obj := range objects {
		err := retryWhileMissing(ctx, obj, func(ctx context.Context) error {
			_, err := resourceOf(client, obj).Create(ctx, obj.Unstructured, metav1.CreateOptions{FieldManager: fieldManager})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retryWhileMissing retries while the namespace does not exist yet, or the object has changed since it was read.
func retryWhileMissing(ctx context.Context, obj Object, do func(context.Context) error) error {
	var err error
	_ = wait.PollUntilContextTimeout(ctx, ensureRetry, ensureTimeout, true, func(ctx context.Context) (bool, error) {
		err = do(ctx)
		return !apierrors.IsNotFound(err) && !apierrors.IsConflict(err), nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return wrap(err, obj)
}

// resourceOf returns the client for an object without discovery: the program's own objects are of kinds with regular
// names, and have a namespace if they are in one.
func resourceOf(client dynamic.Interface, obj Object) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	return client.Resource(resource).Namespace(obj.GetNamespace()) // "" is no namespace
}

// merge returns the current object with the wanted fields in it.
func merge(current, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	merged := current.DeepCopy()
	for key, value := range wanted.DeepCopy().Object {
		switch key {
		case "metadata":
			if labels := union(current.GetLabels(), wanted.GetLabels()); len(labels) > 0 {
				merged.SetLabels(labels)
			}
			if annotations := union(current.GetAnnotations(), wanted.GetAnnotations()); len(annotations) > 0 {
				merged.SetAnnotations(annotations)
			}
		case "data":
			before, _, _ := unstructured.NestedMap(current.Object, key)
			added, _ := value.(map[string]any)
			merged.Object[key] = union(before, added)
		default:
			merged.Object[key] = value
		}
	}
	return merged
}

// union returns the entries of both maps. For a key in both, it takes the value in overrides.
func union[V any](base, overrides map[string]V) map[string]V {
	all := map[string]V{}
	maps.Copy(all, base)
	maps.Copy(all, overrides)
	return all
}

func wrap(err error, obj Object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %s: %w", obj.Source, obj.GetKind(), obj.GetName(), err)
}

// Ensure creates or updates objects: namespaces first, then the others in parallel, which must not depend on each
// other. It does not write objects that are as they should be: the manifests contain the defaults that an API server sets.
func Ensure(ctx context.Context, client dynamic.Interface, objects []Object) error {
	namespaces, others := split(objects)
	if err := ensureAll(ctx, client, namespaces); err != nil {
		return err
	}
	return ensureAll(ctx, client, others)
}
