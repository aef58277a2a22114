package shoot

import (
	"context"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot"

// A failed operation is retried with exponential backoff, first after retryBase, and after retryMax at most.
const (
	retryBase = 200 * time.Millisecond
	retryMax  = 10 * time.Minute
)

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	b := component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: r.ConcurrentSyncs,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.isResponsibleFor),
			predicate.Or(predicate.GenerationChangedPredicate{}, operationRequested()))).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			predicate.And(predicate.NewPredicateFuncs(isShootNamespace), predicate.Predicate(component.Deletions())))).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &appsv1.Deployment{},
			handler.EnqueueRequestsFromMapFunc(r.shootOfNamespace), isPlane(), statusChanged())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Service{},
			handler.EnqueueRequestsFromMapFunc(r.ofService), isPlane(), statusChanged())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupEntry{},
			handler.EnqueueRequestsFromMapFunc(r.ofEntry),
			predicate.Or(operation.OperationEndedPredicate(ofEntry), predicate.Predicate(component.Deletions()))))
	for _, k := range controllerutils.ShootExtensionKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), k.Object,
			handler.EnqueueRequestsFromMapFunc(r.shootOfNamespace), operation.OperationEndedPredicate(operation.OfExtension)))
	}
	return b.Complete(r)
}

// isResponsibleFor reports whether this gardenlet reconciles a Shoot.
func (r *Reconciler) isResponsibleFor(obj client.Object) bool {
	shoot, ok := obj.(*corev1beta1.Shoot)
	return ok && responsible(shoot) == r.SeedName
}

// operationRequested returns a predicate for updates that need a reconciliation, but do not change a Shoot's
// generation: the Shoot has become ready for its migration, another seed has become responsible, or the annotations for
// the provider simulator have changed during an operation.
func operationRequested() predicate.Predicate {
	ready := func(shoot *corev1beta1.Shoot) bool {
		return conditions.IsTrue(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
	}
	return component.UpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return moves(after) && ready(after) && !ready(before) || responsible(before) != responsible(after) ||
			!injection.Same(before, after) && after.Status.LastOperation != nil &&
				after.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded
	})
}

// isPlane returns a predicate for the Deployments and the Service of control planes.
func isPlane() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()[spec.LabelGardenRole] == spec.GardenRoleControlPlane &&
			(obj.GetName() == spec.APIServer || obj.GetName() == spec.ControllerManager)
	})
}

// statusChanged returns a predicate for deletions, and for changes of the status, which the runner of control planes
// writes.
func statusChanged() predicate.Predicate {
	return component.DeletionsAndUpdatesIf(func(before, after client.Object) bool {
		return !equality.Semantic.DeepEqual(statusOf(before), statusOf(after))
	})
}

func statusOf(obj client.Object) any {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Status
	case *corev1.Service:
		return obj.Status
	}
	return nil
}

func ofEntry(obj client.Object) *corev1beta1.LastOperation {
	if entry, ok := obj.(*corev1beta1.BackupEntry); ok {
		return entry.Status.LastOperation
	}
	return nil
}

// isShootNamespace reports whether an object is the namespace of a Shoot. When it is deleted, the deletion of the Shoot
// continues, or the namespace is created again.
func isShootNamespace(obj client.Object) bool {
	return obj.GetLabels()[constants.GardenRole] == constants.GardenRoleShoot
}

// shootOfNamespace maps an object of the seed to the Shoot of its namespace, if an operation on the Shoot is in
// progress or has failed. Otherwise nothing waits for the object.
func (r *Reconciler) shootOfNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	if key, ok := r.botanistCache.of(obj.GetNamespace()); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// ofEntry maps a BackupEntry, or the source entry of a restoration, to its Shoot, if an operation on the Shoot is in
// progress or has failed.
func (r *Reconciler) ofEntry(_ context.Context, entry client.Object) []reconcile.Request {
	name := strings.TrimPrefix(entry.GetName(), sourcePrefix)
	i := strings.LastIndex(name, entryNameSeparator)
	if i < 0 {
		return nil
	}
	if key, ok := r.botanistCache.of(name[:i]); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// ofNamespace maps a namespace of the seed to its Shoot.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.ofTechnicalID(ctx, namespace.GetName())
}

// ofService maps the Service of an API server to its Shoot, which is reconciled when the port changes.
func (r *Reconciler) ofService(ctx context.Context, service client.Object) []reconcile.Request {
	return r.ofTechnicalID(ctx, service.GetNamespace())
}

func (r *Reconciler) ofTechnicalID(ctx context.Context, id string) []reconcile.Request {
	if key, ok := r.botanistCache.of(id); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	shoots := &corev1beta1.ShootList{}
	if err := r.GardenClient.List(ctx, shoots); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Shoots", "namespace", id)
		return nil
	}
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; shoot.Status.TechnicalID == id && r.isResponsibleFor(shoot) {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(shoot)}}
		}
	}
	return nil
}
