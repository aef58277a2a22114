package scheduler

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
func (r *reconciler) addToManager(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.waiting)
	return component.NewControllerBuilder(mgr, "scheduler").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(shootChanges())).
		Watches(&gardencorev1beta1.Shoot{}, all, builder.WithPredicates(roomGained())).
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
// the scheduler itself writes it. It passes Shoots that are deleted or do not wait any more, so that their backoff is
// forgotten.
func shootChanges() predicate.Predicate {
	passes := component.UpdatesIf(func(before, after *gardencorev1beta1.Shoot) bool {
		return waits(before) != waits(after) || waits(after) && !equality.Semantic.DeepEqual(before.Spec, after.Spec)
	})
	passes.CreateFunc = func(e event.CreateEvent) bool { return waits(e.Object.(*gardencorev1beta1.Shoot)) }
	passes.DeleteFunc = func(e event.DeleteEvent) bool { return waits(e.Object.(*gardencorev1beta1.Shoot)) }
	return passes
}

// roomGained passes Shoots that have left a seed.
func roomGained() predicate.Predicate {
	passes := component.UpdatesIf(func(before, after *gardencorev1beta1.Shoot) bool {
		return slices.ContainsFunc(seedsOf(before), func(seed string) bool { return !slices.Contains(seedsOf(after), seed) })
	})
	passes.DeleteFunc = func(e event.DeleteEvent) bool { return len(seedsOf(e.Object.(*gardencorev1beta1.Shoot))) > 0 }
	return passes
}

// changes passes updates in which one of the aspects of the object has changed: the heartbeats of seeds every few
// seconds are no reason to try all Shoots again.
func changes[T client.Object](aspects func(T) []any) predicate.Predicate {
	return component.ChangesIf(func(before, after T) bool { return !equality.Semantic.DeepEqual(aspects(before), aspects(after)) })
}

// seedAspects returns the parts of a Seed that the rules check.
func seedAspects(seed *gardencorev1beta1.Seed) []any {
	conditions := map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus{}
	for _, condition := range seed.Status.Conditions {
		conditions[condition.Type] = condition.Status
	}
	return []any{
		seed.Spec, seed.Labels, seed.Annotations[v1beta1constants.AnnotationEmergencyStopShootReconciliations], seed.DeletionTimestamp != nil,
		conditions, seed.Status.Allocatable, seed.Status.LastOperation != nil,
	}
}

func cloudProfileAspects(profile *gardencorev1beta1.CloudProfile) []any {
	return []any{profile.Spec.SeedSelector}
}

func namespacedCloudProfileAspects(profile *gardencorev1beta1.NamespacedCloudProfile) []any {
	return []any{profile.Status.CloudProfileSpec.SeedSelector}
}

func projectAspects(project *gardencorev1beta1.Project) []any { return []any{project.Spec.Namespace} }

func configMapAspects(configMap *corev1.ConfigMap) []any {
	return []any{configMap.Data, configMap.Annotations[v1beta1constants.AnnotationSchedulingCloudProfiles], configMap.Labels}
}
