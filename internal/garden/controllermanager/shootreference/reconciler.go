package shootreference

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-reference"

// finalizer keeps what is referred to, and what refers; Gardener's.
const finalizer = constants.ReferenceProtectionFinalizerName

// Reconciler keeps what Shoots refer to.
type Reconciler struct {
	Client client.Client
	// Reader asks the garden itself.
	Reader client.Reader
}

// AddToManager adds the controller, with what it misses from the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Reader == nil {
		r.Reader = mgr.GetAPIReader()
	}
	return builder.ControllerManagedBy(mgr).Named(ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(changed())).
		Complete(r)
}

// changed lets Shoots through that refer to something else than before, or to nothing any more since they are done with.
func changed() predicate.Predicate {
	return kit.CreationsAndUpdates(func(before, after *corev1beta1.Shoot) bool {
		return !isUsing(after) || !maps.Equal(ofShoot(before), ofShoot(after))
	})
}

// Reconcile releases what nothing in the Shoot's namespace refers to any more, and keeps what the Shoot refers to.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.release(ctx, shoot.Namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("releasing what Shoots in the namespace %q referred to: %w", shoot.Namespace, err)
	}
	refs := ofShoot(shoot)
	if !isUsing(shoot) || len(refs) == 0 {
		return reconcile.Result{}, finalizers.Remove(ctx, r.Client, shoot, finalizer)
	}
	var errs []error
	for ref := range refs {
		if err := r.keep(ctx, ref.object(shoot.Namespace)); err != nil {
			errs = append(errs, fmt.Errorf("keeping the %s %q that the Shoot %s refers to: %w", ref.kind.Kind, ref.name, request, err))
		}
	}
	if shoot.DeletionTimestamp == nil && len(errs) < len(refs) {
		errs = append(errs, finalizers.Add(ctx, r.Client, shoot, finalizer))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *Reconciler) keep(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.DeletionTimestamp != nil {
		// It is too late, and the garden would refuse.
		return nil
	}
	return finalizers.Add(ctx, r.Client, obj, finalizer)
}

// release releases what nothing refers to. The order matters: what is kept is read before what refers, so that nothing
// is released that was kept for somebody who came in between. The garden itself has the last word.
func (r *Reconciler) release(ctx context.Context, namespace string) error {
	candidates, err := r.kept(ctx, namespace)
	if err != nil {
		return err
	}
	for _, reader := range []client.Reader{r.Client, r.Reader} {
		if len(candidates) == 0 {
			return nil
		}
		used, err := inNamespace(ctx, reader, namespace)
		if err != nil {
			return err
		}
		maps.DeleteFunc(candidates, func(ref reference, _ *metav1.PartialObjectMetadata) bool { return used[ref] })
	}
	for ref, obj := range candidates {
		if err := finalizers.Remove(ctx, r.Client, obj, finalizer); err != nil {
			return fmt.Errorf("the %s %q: %w", ref.kind.Kind, ref.name, err)
		}
	}
	return nil
}

// kept is what is kept in a namespace.
func (r *Reconciler) kept(ctx context.Context, namespace string) (map[reference]*metav1.PartialObjectMetadata, error) {
	kept := map[reference]*metav1.PartialObjectMetadata{}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := r.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing every %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if item := &list.Items[i]; controllerutil.ContainsFinalizer(item, finalizer) {
				item.SetGroupVersionKind(kind)
				kept[reference{kind, item.Name}] = item
			}
		}
	}
	return kept, nil
}
