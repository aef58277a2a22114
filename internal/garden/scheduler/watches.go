package scheduler

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// addToManager adds the controller to mgr. It reconciles a waiting Shoot when the Shoot changes, and all waiting
// Shoots when another object changes on which a decision depends.
func (r *reconciler) addToManager(mgr manager.Manager, workers int, clk clock.WithTicker) error {
	all := handler.EnqueueRequestsFromMapFunc(r.waiting)
	yes := true
	return component.NewControllerBuilder(mgr, "scheduler", controller.Options{
		MaxConcurrentReconciles: workers, SkipNameValidation: &yes, NewQueue: component.Queue(clk),
	}).
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(shootChanges)).
		Watches(&gardencorev1beta1.Shoot{}, all, builder.WithPredicates(roomGained)).
		Watches(&gardencorev1beta1.Seed{}, all, builder.WithPredicates(changes(seedAspects))).
		Watches(&gardencorev1beta1.CloudProfile{}, all, builder.WithPredicates(changes(cloudProfileAspects))).
		Watches(&gardencorev1beta1.NamespacedCloudProfile{}, all, builder.WithPredicates(changes(namespacedCloudProfileAspects))).
		Watches(&gardencorev1beta1.Project{}, all, builder.WithPredicates(changes(projectAspects))).
		Watches(&corev1.ConfigMap{}, all, builder.WithPredicates(changes(configMapAspects))).
		Complete(r)
}

// waiting returns the requests for all Shoots that wait for a seed.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	shoots, err := r.shoots(ctx)
	if err != nil {
		// The cache has stopped. The Shoots are tried again in any case, with backoff.
		logf.FromContext(ctx).Error(err, "Shoots that wait for a seed are not tried at once")
		return nil
	}
	for i := range shoots {
		if waits(&shoots[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots[i])})
		}
	}
	return requests
}

// shootChanges passes new waiting Shoots, and waiting Shoots whose spec has changed. It ignores the status, because
// the scheduler itself writes it. It passes deleted waiting Shoots, so that their backoff is forgotten.
var shootChanges = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return objectWaits(e.Object) },
	GenericFunc: func(e event.GenericEvent) bool { return objectWaits(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isShoot := e.ObjectOld.(*gardencorev1beta1.Shoot)
		after, isStillShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
		if !isShoot || !isStillShoot {
			return false
		}
		// A Shoot that does not wait any more is also passed, so that its backoff is forgotten.
		return waits(before) != waits(after) || waits(after) && !equality.Semantic.DeepEqual(before.Spec, after.Spec)
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return objectWaits(e.Object) },
}

func objectWaits(object client.Object) bool {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	return ok && waits(shoot)
}

// roomGained passes Shoots that have left a seed.
var roomGained = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isShoot := e.ObjectOld.(*gardencorev1beta1.Shoot)
		after, isStillShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
		if !isShoot || !isStillShoot {
			return false
		}
		left := seedsOf(after)
		return slices.ContainsFunc(seedsOf(before), func(seed string) bool { return !slices.Contains(left, seed) })
	},
	DeleteFunc: func(e event.DeleteEvent) bool {
		shoot, ok := e.Object.(*gardencorev1beta1.Shoot)
		return ok && len(seedsOf(shoot)) > 0
	},
}

// changes passes updates in which one of the aspects of the object has changed: the heartbeats of seeds every few
// seconds are no reason to try all Shoots again.
func changes(aspects func(client.Object) []any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(aspects(e.ObjectOld), aspects(e.ObjectNew))
	}}
}

// seedAspects returns the parts of a Seed that the rules check.
func seedAspects(object client.Object) []any {
	seed, ok := object.(*gardencorev1beta1.Seed)
	if !ok {
		return nil
	}
	conditions := map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus{}
	for _, condition := range seed.Status.Conditions {
		conditions[condition.Type] = condition.Status
	}
	return []any{
		seed.Spec, seed.Labels, seed.Annotations[v1beta1constants.AnnotationEmergencyStopShootReconciliations], seed.DeletionTimestamp != nil,
		conditions, seed.Status.Allocatable, seed.Status.LastOperation != nil,
	}
}

func cloudProfileAspects(object client.Object) []any {
	if profile, ok := object.(*gardencorev1beta1.CloudProfile); ok {
		return []any{profile.Spec.SeedSelector}
	}
	return nil
}

func namespacedCloudProfileAspects(object client.Object) []any {
	if profile, ok := object.(*gardencorev1beta1.NamespacedCloudProfile); ok {
		return []any{profile.Status.CloudProfileSpec.SeedSelector}
	}
	return nil
}

func projectAspects(object client.Object) []any {
	if project, ok := object.(*gardencorev1beta1.Project); ok {
		return []any{project.Spec.Namespace}
	}
	return nil
}

func configMapAspects(object client.Object) []any {
	if configMap, ok := object.(*corev1.ConfigMap); ok {
		return []any{configMap.Data, configMap.Annotations[v1beta1constants.AnnotationSchedulingCloudProfiles], configMap.Labels}
	}
	return nil
}
