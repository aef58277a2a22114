package tokenrequestor

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "token-requestor"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet. Only the metadata
// of Secrets is cached.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.GardenConfig = cmp.Or(r.GardenConfig, garden.GetConfig())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.SeedReader = cmp.Or(r.SeedReader, mgr.GetAPIReader())
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	if r.Jitter == nil {
		r.Jitter = wait.Jitter
	}
	if r.User == nil {
		r.User = r.userOf
	}
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return relevant(obj) || controllerutil.ContainsFinalizer(obj, finalizer)
		}))).
		Complete(r)
}
