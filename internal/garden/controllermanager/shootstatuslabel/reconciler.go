package shootstatuslabel

import (
	"cmp"
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-statuslabel"

// Reconciler sets the status label of Shoots.
type Reconciler struct {
	Client client.Client
}

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(mislabelled())).
		Complete(r)
}

// mislabelled passes Shoots whose label differs from their status.
func mislabelled() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(_, after *corev1beta1.Shoot) bool {
		return after.Labels[constants.ShootStatus] != Status(after)
	})
}

// Reconcile sets the status label of a Shoot.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status := Status(shoot)
	if shoot.Labels[constants.ShootStatus] == status {
		return reconcile.Result{}, nil
	}
	before := shoot.DeepCopy()
	metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.ShootStatus, status)
	if err := r.Client.Patch(ctx, shoot, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("labelling the Shoot %s as %s: %w", request, status, err)
	}
	return reconcile.Result{}, nil
}
