package shoot

import (
	"cmp"
	"context"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot"

// An operation that has failed is tried again after retryBase, then after twice as long each time, retryMax at the longest.
const (
	retryBase = 200 * time.Millisecond
	retryMax  = 10 * time.Minute
)

// AddToManager adds the controller to the seed's manager, with what it misses from there and from the garden.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.SeedReader = cmp.Or(r.SeedReader, mgr.GetAPIReader())
	r.Recorder = cmp.Or(r.Recorder, garden.GetEventRecorder(ControllerName+"-controller"))
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	b := component.Controller(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: r.ConcurrentSyncs,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.concerns),
			predicate.Or(predicate.GenerationChangedPredicate{}, operationRequested()))).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(r.ofNamespace), namespaceDeleted())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &appsv1.Deployment{},
			handler.EnqueueRequestsFromMapFunc(r.shootOfNamespace), isPlane(), statusChanged())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Service{},
			handler.EnqueueRequestsFromMapFunc(r.shootOfNamespace), isPlane(), statusChanged())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupEntry{},
			handler.EnqueueRequestsFromMapFunc(r.ofEntry), predicate.Or(operation.Ended(ofEntry), deleted())))
	for _, k := range extensionKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), k.object(),
			handler.EnqueueRequestsFromMapFunc(r.shootOfNamespace), operation.Ended(operation.OfExtension)))
	}
	return b.Complete(r)
}

// concerns says whether the seed is responsible for a Shoot.
func (r *Reconciler) concerns(obj client.Object) bool {
	shoot, ok := obj.(*corev1beta1.Shoot)
	return ok && responsible(shoot) == r.SeedName
}

// operationRequested passes what does not change a Shoot's generation, and is still for the gardenlet: the
// Shoot may move now, or what is to go wrong with it has changed while something is done.
func operationRequested() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1beta1.Shoot)
			after, is := e.ObjectNew.(*corev1beta1.Shoot)
			if !ok || !is {
				return false
			}
			ready := func(shoot *corev1beta1.Shoot) bool {
				return conditions.IsTrue(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
			}
			return moves(after) && ready(after) && !ready(before) || responsible(before) != responsible(after) ||
				!injection.Same(before, after) && after.Status.LastOperation != nil &&
					after.Status.LastOperation.State != corev1beta1.LastOperationStateSucceeded
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// isPlane passes the objects of control planes.
func isPlane() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()[spec.LabelGardenRole] == spec.GardenRoleControlPlane &&
			(obj.GetName() == spec.APIServer || obj.GetName() == spec.ControllerManager)
	})
}

// statusChanged passes what the runner of control planes says, and that an object has gone.
func statusChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(statusOf(e.ObjectOld), statusOf(e.ObjectNew))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
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

// deleted passes deletions only.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func ofEntry(obj client.Object) *corev1beta1.LastOperation {
	if entry, ok := obj.(*corev1beta1.BackupEntry); ok {
		return entry.Status.LastOperation
	}
	return nil
}

// namespaceDeleted passes that the namespace of a Shoot has gone: its deletion continues then, or it is made again.
func namespaceDeleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool {
			return e.Object.GetLabels()[constants.GardenRole] == constants.GardenRoleShoot
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// shootOfNamespace is the Shoot in whose namespace in the seed an object is, if an operation is running for it:
// otherwise none waits.
func (r *Reconciler) shootOfNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	if key, ok := r.botanistCache.of(obj.GetNamespace()); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// ofEntry is the Shoot whose BackupEntry this is, or whose source, if something is done for it.
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

// ofNamespace is the Shoot whose namespace in the seed this is.
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if key, ok := r.botanistCache.of(namespace.GetName()); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	shoots := &corev1beta1.ShootList{}
	if err := r.GardenClient.List(ctx, shoots); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Shoots", "namespace", namespace.GetName())
		return nil
	}
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; shoot.Status.TechnicalID == namespace.GetName() && r.concerns(shoot) {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(shoot)}}
		}
	}
	return nil
}
