package shootcare

import (
	"context"
	"math/rand/v2"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-care"

// minTimeout is the minimum timeout of a check, for periods that are shorter.
const minTimeout = 30 * time.Second

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	closes := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.Shoots.Close()
		return nil
	})
	if err := mgr.Add(closes); err != nil {
		return err
	}
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: r.ConcurrentSyncs,
		RateLimiter: workqueue.NewTypedWithMaxWaitRateLimiter(
			workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), r.SyncPeriod),
		ReconciliationTimeout: max(r.SyncPeriod, minTimeout),
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{}, r.events())).
		Complete(r)
}

// events returns the handler for the events that trigger a check before the period is over: a Shoot is new, an
// operation begins or ends, the Shoot hibernates or wakes up, it changes its seed, or it is deleted.
func (r *Reconciler) events() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	request := func(obj client.Object) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			shoot, ok := e.Object.(*corev1beta1.Shoot)
			if ok && r.isResponsibleFor(shoot) && len(shoot.Status.Conditions) > 0 { // after a start, the checks are spread
				q.AddAfter(request(shoot), rand.N(r.SyncPeriod))
				return
			}
			q.Add(request(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*corev1beta1.Shoot)
			now, ok2 := e.ObjectNew.(*corev1beta1.Shoot)
			if ok && ok2 && isOccasion(before, now) {
				q.Add(request(now))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(request(e.Object)) },
	}
}

func isOccasion(before, now *corev1beta1.Shoot) bool {
	return stage(before) != stage(now) || hibernates(before) != hibernates(now) || !ptr.Equal(before.Status.SeedName, now.Status.SeedName)
}

// stage returns the type and state of the last operation, without its progress.
func stage(shoot *corev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil {
		return ""
	}
	return string(last.Type) + " " + string(last.State)
}
