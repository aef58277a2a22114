// Package references is the common part of the controllers that protect the objects to which Seeds and Shoots refer:
// which kinds are protected, what the references are, and how a finalizer protects the objects.
//
// It may import API types and the finalizers of the controller-manager. It keeps no state.
package references

import (
	"context"
	"errors"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// Finalizer protects the objects that are referred to, and the objects that refer to them. It is the same as in
// Gardener.
const Finalizer = constants.ReferenceProtectionFinalizerName

// The kinds of the objects that are protected.
var (
	Secret           = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap        = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	WorkloadIdentity = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	Kinds            = []schema.GroupVersionKind{Secret, ConfigMap, WorkloadIdentity}
)

// Reference is a reference to an object in a namespace that is known from the context.
type Reference struct {
	Kind schema.GroupVersionKind
	Name string
}

// object returns the metadata of the object that the reference names.
func (r Reference) object(namespace string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.Name}}
	obj.SetGroupVersionKind(r.Kind)
	return obj
}

// References is a set of references.
type References map[Reference]bool

// Add adds a reference, unless the name is empty.
func (r References) Add(kind schema.GroupVersionKind, name string) {
	if name != "" {
		r[Reference{kind, name}] = true
	}
}

// AddRef adds a reference if its kind is one of those that are protected.
func (r References) AddRef(ref *autoscalingv1.CrossVersionObjectReference) {
	if ref == nil {
		return
	}
	for _, kind := range Kinds {
		if ref.APIVersion == kind.GroupVersion().String() && ref.Kind == kind.Kind {
			r.Add(kind, ref.Name)
		}
	}
}

// AddResources adds the references of a list of resources, as AddRef does.
func (r References) AddResources(resources []corev1beta1.NamedResourceReference) {
	for i := range resources {
		r.AddRef(&resources[i].ResourceRef)
	}
}

// NeedsReferences reports whether the objects to which a Seed or Shoot refers have to be protected: until the gardenlet has
// removed its finalizer from a Seed or Shoot that is being deleted.
func NeedsReferences(user client.Object) bool {
	return user.GetDeletionTimestamp() == nil || controllerutil.ContainsFinalizer(user, corev1beta1.GardenerName)
}

// Protector protects objects with the finalizer, and releases them.
type Protector struct{ kit.Base }

// Protect adds the finalizer to the objects in a namespace to which a user refers, and to the user itself, so that the
// user is not gone before they are released. If the user needs no objects any more, Protect removes the finalizer from
// the user.
func (k Protector) Protect(ctx context.Context, user client.Object, namespace string, refs References) error {
	if !NeedsReferences(user) || len(refs) == 0 {
		return operation.RemoveFinalizers(ctx, k.Client, user, Finalizer)
	}
	var errs []error
	for ref := range refs {
		if err := k.keep(ctx, ref.object(namespace)); err != nil {
			errs = append(errs, fmt.Errorf("keeping the %s %q that %T %s refers to: %w", ref.Kind.Kind, ref.Name, user,
				client.ObjectKeyFromObject(user), err))
		}
	}
	if user.GetDeletionTimestamp() == nil && len(errs) < len(refs) {
		errs = append(errs, operation.AddFinalizer(ctx, k.Client, user, Finalizer))
	}
	return errors.Join(errs...)
}

func (k Protector) keep(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	if err := k.Reader.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.DeletionTimestamp != nil {
		// The garden refuses new finalizers on an object that is being deleted.
		return nil
	}
	return operation.AddFinalizer(ctx, k.Client, obj, Finalizer)
}

// ListProtected lists the objects in a namespace that have the finalizer. Call it before listing the objects that refer to
// them: otherwise an object is released that a new reference needs.
func (k Protector) ListProtected(ctx context.Context, namespace string) (map[Reference]*metav1.PartialObjectMetadata, error) {
	kept := map[Reference]*metav1.PartialObjectMetadata{}
	for _, kind := range Kinds {
		list := kit.MetadataList(kind)
		if err := k.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing every %s in the namespace %q: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			if item := &list.Items[i]; controllerutil.ContainsFinalizer(item, Finalizer) {
				item.SetGroupVersionKind(kind)
				kept[Reference{kind, item.Name}] = item
			}
		}
	}
	return kept, nil
}

// Release removes the finalizer from unused objects.
func (k Protector) Release(ctx context.Context, unused map[Reference]*metav1.PartialObjectMetadata) error {
	for ref, obj := range unused {
		if err := operation.RemoveFinalizers(ctx, k.Client, obj, Finalizer); err != nil {
			return fmt.Errorf("the %s %q: %w", ref.Kind.Kind, ref.Name, err)
		}
	}
	return nil
}
