package shootreference

import (
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

// Reconciler protects the objects to which Shoots refer.
type Reconciler struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(changed())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// changed passes Shoots whose references have changed, and Shoots in deletion that do not need the objects any more.
func changed() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return !references.NeedsReferences(after) || !maps.Equal(ofShoot(before), ofShoot(after))
	})
}

// Reconcile releases objects in the Shoot's namespace to which nothing refers any more, and protects the objects to
// which the Shoot refers.
func (r *Reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if err := r.release(ctx, shoot.Namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("releasing what Shoots in the namespace %q referred to: %w", shoot.Namespace, err)
	}
	return reconcile.Result{}, references.Protector{Base: r.Base}.Protect(ctx, shoot, shoot.Namespace, ofShoot(shoot))
}

// release releases the objects to which nothing refers. It lists the protected objects before the Shoots: otherwise it
// would release an object to which a new Shoot refers. The last check reads from the API server, not from the cache.
func (r *Reconciler) release(ctx context.Context, namespace string) error {
	candidates, err := references.Protector{Base: r.Base}.ListProtected(ctx, namespace)
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
	return references.Protector{Base: r.Base}.Release(ctx, candidates)
}
