package seedcare

import (
	"context"
	"errors"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed-care"

const (
	// syncPeriod is the period of the health check, as in Gardener.
	syncPeriod = 30 * time.Second
	// threshold is how long a failed condition is Progressing before it becomes False, as in Gardener's chart.
	threshold = time.Minute
)

// Server checks the seed's API server.
type Server interface {
	// Ready returns an error if the API server is not ready.
	Ready(context.Context) error
	// Resources returns the names of all served resources, with their groups.
	Resources(context.Context) (sets.Set[string], error)
}

// Reconciler checks the health of a seed.
type Reconciler struct {
	controllerutils.Base
	Server Server

	expected expected
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedWithMaxWaitRateLimiter(
			workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), syncPeriod),
		ReconciliationTimeout: syncPeriod,
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.Own), changed())).
		Complete(r)
}

// changed returns a predicate for the events that trigger a check at once: the Seed is created, its reconciliation has
// succeeded, or its annotation for the emergency stop has changed.
func changed() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Seed) bool {
		return !succeeded(before.Status.LastOperation) && succeeded(after.Status.LastOperation) || stopped(before) != stopped(after)
	})
}

func succeeded(last *corev1beta1.LastOperation) bool {
	return last != nil && last.Type != corev1beta1.LastOperationTypeDelete && last.State == corev1beta1.LastOperationStateSucceeded
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.loadExpected(); err != nil {
		return reconcile.Result{}, err
	}
	health := r.health(ctx, seed)
	err := conditions.PatchSeed(ctx, r.GardenClient, seed, func(all []conditions.Condition) ([]conditions.Condition, bool) {
		all, changed := conditions.Set(all, health, r.Clock)
		all, alsoChanged := r.emergency(seed, all)
		return all, changed || alsoChanged
	})
	honored := r.honored(ctx)
	err = errors.Join(err, conditions.PatchSeedConstraints(ctx, r.GardenClient, seed,
		func(all []conditions.Condition) ([]conditions.Condition, bool) {
			if honored.Status == corev1beta1.ConditionTrue {
				return conditions.Without(all, honored.Type)
			}
			return conditions.Set(all, honored, r.Clock)
		}))
	return reconcile.Result{RequeueAfter: syncPeriod}, err
}

// health returns the condition for the seed's system components.
func (r *Reconciler) health(ctx context.Context, seed *corev1beta1.Seed) conditions.Condition {
	before := conditions.Find(seed.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy)
	problem, err := r.checkComponents(ctx)
	switch {
	case err != nil:
		return conditions.Unchecked(before.Type, err)
	case problem != nil:
		return conditions.Failed(before, seed.Status.LastOperation, threshold, problem.reason, problem.message, r.Clock)
	}
	return conditions.Condition{
		Type: before.Type, Status: corev1beta1.ConditionTrue,
		Reason: "SystemComponentsRunning", Message: "All system components are healthy.",
	}
}

// emergency sets the condition that the Shoots of the seed are not reconciled if an operator has stopped that, and removes
// it otherwise.
func (r *Reconciler) emergency(seed *corev1beta1.Seed, all []conditions.Condition) ([]conditions.Condition, bool) {
	const kind = corev1beta1.SeedEmergencyStopShootReconciliations
	if !stopped(seed) {
		return conditions.Without(all, kind)
	}
	return conditions.Set(all, conditions.Condition{
		Type: kind, Status: corev1beta1.ConditionTrue, Reason: string(kind),
		Message: "The Shoots of this Seed are not reconciled, because of its annotation " +
			constants.AnnotationEmergencyStopShootReconciliations + ".",
	}, r.Clock)
}

func stopped(seed *corev1beta1.Seed) bool {
	wanted, err := strconv.ParseBool(seed.Annotations[constants.AnnotationEmergencyStopShootReconciliations])
	return err == nil && wanted
}
