// Package references is what the controllers have in common that keep what Seeds and Shoots refer to: which kinds are kept,
// what refers to them, and how they are kept with a finalizer.
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

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
)

// Finalizer keeps what is referred to, and what refers; Gardener's.
const Finalizer = constants.ReferenceProtectionFinalizerName

// The kinds of what is kept.
var (
	Secret           = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap        = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	WorkloadIdentity = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	Kinds            = []schema.GroupVersionKind{Secret, ConfigMap, WorkloadIdentity}
)

// Reference is what something refers to, in one namespace.
type Reference struct {
	Kind schema.GroupVersionKind
	Name string
}

// object is what there is to know of it.
func (r Reference) object(namespace string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.Name}}
	obj.SetGroupVersionKind(r.Kind)
	return obj
}

// References are all different ones.
type References map[Reference]bool

// Add adds one, unless it has no name.
func (r References) Add(kind schema.GroupVersionKind, name string) {
	if name != "" {
		r[Reference{kind, name}] = true
	}
}

// AddRef adds one of the kinds that are kept.
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

// AddResources adds those of a list of resources.
func (r References) AddResources(resources []corev1beta1.NamedResourceReference) {
	for i := range resources {
		r.AddRef(&resources[i].ResourceRef)
	}
}

// IsUsing says whether what a Seed or Shoot refers to has to be kept for it: until the gardenlet is done with it.
func IsUsing(user client.Object) bool {
	return user.GetDeletionTimestamp() == nil || controllerutil.ContainsFinalizer(user, corev1beta1.GardenerName)
}

// Keeper keeps what is referred to.
type Keeper struct {
	Client client.Client
	// Reader asks the garden itself.
	Reader client.Reader
}

// Settle keeps what a user refers to in a namespace, and the user as long as there is anything to release after it.
func (k Keeper) Settle(ctx context.Context, user client.Object, namespace string, refs References) error {
	if !IsUsing(user) || len(refs) == 0 {
		return finalizers.Remove(ctx, k.Client, user, Finalizer)
	}
	var errs []error
	for ref := range refs {
		if err := k.keep(ctx, ref.object(namespace)); err != nil {
			errs = append(errs, fmt.Errorf("keeping the %s %q that %T %s refers to: %w", ref.Kind.Kind, ref.Name, user,
				client.ObjectKeyFromObject(user), err))
		}
	}
	if user.GetDeletionTimestamp() == nil && len(errs) < len(refs) {
		errs = append(errs, finalizers.Add(ctx, k.Client, user, Finalizer))
	}
	return errors.Join(errs...)
}

func (k Keeper) keep(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	if err := k.Reader.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.DeletionTimestamp != nil {
		// It is too late, and the garden would refuse.
		return nil
	}
	return finalizers.Add(ctx, k.Client, obj, Finalizer)
}

// Kept lists the objects in a namespace that have the finalizer. Call it before listing the objects that refer to
// them: otherwise an object is released that a new reference needs.
func (k Keeper) Kept(ctx context.Context, namespace string) (map[Reference]*metav1.PartialObjectMetadata, error) {
	kept := map[Reference]*metav1.PartialObjectMetadata{}
	for _, kind := range Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
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

// Release takes the finalizer from what nothing refers to.
func (k Keeper) Release(ctx context.Context, unused map[Reference]*metav1.PartialObjectMetadata) error {
	for ref, obj := range unused {
		if err := finalizers.Remove(ctx, k.Client, obj, Finalizer); err != nil {
			return fmt.Errorf("the %s %q: %w", ref.Kind.Kind, ref.Name, err)
		}
	}
	return nil
}
