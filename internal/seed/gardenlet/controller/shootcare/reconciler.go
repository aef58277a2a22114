package shootcare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	componentcluster "github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-care"

// failedSyncPeriod is the check period of a Shoot with conditions or constraints that are not True, if it is shorter than
// the usual period.
const failedSyncPeriod = 10 * time.Second

// Reconciler checks the health of the Shoots of a seed.
type Reconciler struct {
	controllerutils.Base
	// Shoots holds the clients for the Shoots' API servers.
	Shoots *shootaccess.Cache
	// ConcurrentSyncs is the number of Shoots that are checked at the same time.
	ConcurrentSyncs int
	// SyncPeriod is the check period of a Shoot. Events trigger a check earlier.
	SyncPeriod time.Duration
	// Thresholds are how long a failed condition is Progressing before it becomes False. There are none by default.
	Thresholds map[corev1beta1.ConditionType]time.Duration
	// ProgressingThreshold, if not nil, is how long the rollout of a ManagedResource may take.
	ProgressingThreshold *metav1.Duration
}

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

// Reconcile checks one Shoot, writes what has changed, and requeues the Shoot for the next period. A hibernated
// Shoot is not requeued, unless a rotation may become due: an event triggers the next check when it wakes up.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, shoot); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Shoots.Drop(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.isResponsibleFor(shoot) {
		r.Shoots.Drop(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	asleep := hibernates(shoot)
	var found findings
	if asleep {
		r.Shoots.Drop(request.NamespacedName)
		found = sleeping(shoot, r.Clock.Now())
	} else {
		found = r.checkShoot(ctx, shoot)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, context.Cause(ctx)
	}
	tolerateFailures(shoot, found.conditions)
	tolerateFailures(shoot, found.constraints)
	if err := r.write(ctx, shoot, found); err != nil {
		return reconcile.Result{}, err
	}
	if asleep && !rotatesAutomatically(shoot) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: r.next(found)}, nil
}

// isResponsibleFor reports whether a Shoot is on the seed, and the seed's gardenlet has begun to reconcile it.
func (r *Reconciler) isResponsibleFor(shoot *corev1beta1.Shoot) bool {
	return ptr.Deref(shoot.Status.SeedName, "") == r.SeedName && shoot.Status.TechnicalID != ""
}

func hibernates(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.IsHibernated || componentcluster.IsHibernated(shoot)
}

func isWorkerless(shoot *corev1beta1.Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

func (r *Reconciler) next(found findings) time.Duration {
	for _, all := range [][]conditions.Condition{found.conditions, found.constraints} {
		for _, c := range all {
			if c.Status != corev1beta1.ConditionTrue {
				return min(failedSyncPeriod, r.SyncPeriod)
			}
		}
	}
	return r.SyncPeriod
}

// findings are the current conditions and constraints of a Shoot. Types of this controller that are missing here are
// removed from the Shoot.
type findings struct{ conditions, constraints []conditions.Condition }

// Types of the conditions and constraints that this controller writes.
var (
	ourConditions = []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
		corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
	}
	ourConstraints = []corev1beta1.ConditionType{
		corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied,
		corev1beta1.ShootCACertificateValiditiesAcceptable,
		corev1beta1.ShootCRDsWithProblematicConversionWebhooks, corev1beta1.ShootManualInPlaceWorkersUpdated,
		corev1beta1.ShootManagedResourcesHonored, corev1beta1.ShootPreservedFailedMachinesAbsent,
		corev1beta1.ShootAutomaticCredentialsRotationPossible,
		"HasIgnoredManagedResources", // the name of ManagedResourcesHonored before Gardener v1.150
	}
)

// write writes changed conditions and constraints, and keeps those of other controllers.
func (r *Reconciler) write(ctx context.Context, shoot *corev1beta1.Shoot, found findings) error {
	before := shoot.DeepCopy()
	all, changed := r.merge(shoot.Status.Conditions, found.conditions, ourConditions)
	constraints, changedToo := r.merge(shoot.Status.Constraints, found.constraints, ourConstraints)
	if !changed && !changedToo {
		return nil
	}
	if gone, err := r.gone(ctx, client.ObjectKeyFromObject(shoot)); gone || err != nil {
		return err
	}
	shoot.Status.Conditions, shoot.Status.Constraints = all, constraints
	if err := r.GardenClient.Status().Patch(ctx, shoot, client.StrategicMergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the conditions of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err))
	}
	return nil
}

// gone reports whether a Shoot was deleted, or has left the seed, since the check began: then this gardenlet must not
// write its status any more.
func (r *Reconciler) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenReader.Get(ctx, key, shoot); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return true, nil
		}
		return false, fmt.Errorf("reading Shoot %s: %w", key, err)
	}
	return !r.isResponsibleFor(shoot) ||
		operation.Is(shoot.Status.LastOperation, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateSucceeded), nil
}

func (r *Reconciler) merge(before, found []conditions.Condition, ours []corev1beta1.ConditionType) (
	all []conditions.Condition, changed bool) {
	all = before
	for _, kind := range ours {
		var changes bool
		if now := conditions.Get(found, kind); now != nil {
			all, changes = conditions.Set(all, *now, r.Clock)
		} else {
			all, changes = conditions.Without(all, kind)
		}
		changed = changed || changes
	}
	return all, changed
}

// tolerateFailures changes False to Progressing while failures are expected: until a creation or deletion has succeeded, and
// during another operation without errors.
func tolerateFailures(shoot *corev1beta1.Shoot, all []conditions.Condition) {
	if !unstable(shoot) {
		return
	}
	for i := range all {
		if all[i].Status == corev1beta1.ConditionFalse {
			all[i].Status = corev1beta1.ConditionProgressing
		}
	}
}

func unstable(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return true
	case last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeDelete:
		return last.State != corev1beta1.LastOperationStateSucceeded
	}
	return last.State == corev1beta1.LastOperationStateProcessing && len(shoot.Status.LastErrors) == 0
}
