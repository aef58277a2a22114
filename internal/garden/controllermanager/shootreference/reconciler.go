package shootreference

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-reference"

// Reconciler keeps what Shoots refer to.
type Reconciler struct {
	Client client.Client
	// Reader asks the garden itself.
	Reader client.Reader
}

// AddToManager adds the controller, with what it misses from the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	return component.Controller(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(changed())).
		Complete(r)
}

// changed passes Shoots that refer to something else than before, or to nothing any more since they are done with.
func changed() predicate.Predicate {
	return kit.CreationsAndUpdates(func(before, after *corev1beta1.Shoot) bool {
		return !references.IsUsing(after) || !maps.Equal(ofShoot(before), ofShoot(after))
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
	return reconcile.Result{}, r.keeper().Settle(ctx, shoot, shoot.Namespace, ofShoot(shoot))
}

func (r *Reconciler) keeper() references.Keeper {
	return references.Keeper{Client: r.Client, Reader: r.Reader}
}

// release releases the objects that nothing refers to. It lists the kept objects before the Shoots: otherwise it
// releases an object that a new Shoot refers to. The last check reads from the garden itself, not from the cache.
func (r *Reconciler) release(ctx context.Context, namespace string) error {
	candidates, err := r.keeper().Kept(ctx, namespace)
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
		maps.DeleteFunc(candidates, func(ref references.Reference, _ *metav1.PartialObjectMetadata) bool { return used[ref] })
	}
	return r.keeper().Release(ctx, candidates)
}
