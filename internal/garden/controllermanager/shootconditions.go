package controllermanager

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// shootConditionsName is the name of the controller, which is Gardener's.
const shootConditionsName = "shoot-conditions"

// ownConditions are the conditions of Shoots themselves; all others come from Seeds.
var ownConditions = []corev1beta1.ConditionType{
	corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
	corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
}

// ShootConditions copies the conditions of a Seed to the Shoot in which it runs: a Shoot that a ManagedSeed registers
// as a Seed has the Seed's conditions beside its own ones.
type ShootConditions struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootConditions) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootConditionsName)
	return component.NewControllerBuilder(mgr, shootConditionsName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(component.Creations())).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(conditionsChanged())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// conditionsChanged passes Seeds that are created or deleted, or whose conditions have changed.
func conditionsChanged() predicate.Predicate {
	return component.ChangesIf(func(before, after *corev1beta1.Seed) bool {
		return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	})
}

// shootOf returns a request for the Shoot in which a Seed runs, if there is a ManagedSeed for it.
func (r *ShootConditions) shootOf(ctx context.Context, seed client.Object) []reconcile.Request {
	managedSeed := r.ManagedSeedOf(ctx, seed)
	if managedSeed == nil || managedSeed.Spec.Shoot == nil {
		return nil
	}
	return kit.RequestFor(managedSeed.Namespace, managedSeed.Spec.Shoot.Name)
}

// Reconcile copies the conditions of the Seed to the Shoot, or removes them if the Shoot is no Seed.
func (r *ShootConditions) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	all := slices.DeleteFunc(slices.Clone(shoot.Status.Conditions), func(c corev1beta1.Condition) bool {
		return !slices.Contains(ownConditions, c.Type)
	})
	ofSeed, err := r.seedConditions(ctx, client.ObjectKeyFromObject(shoot))
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, condition := range ofSeed {
		if own := conditions.Get(all, condition.Type); own != nil {
			*own = condition
		} else {
			all = append(all, condition)
		}
	}
	// The gardenlet writes conditions, too: the optimistic lock prevents that one overwrites the changes of the other.
	return reconcile.Result{}, operation.PatchStatusExclusively(ctx, r.Client, shoot,
		func(shoot *corev1beta1.Shoot) { shoot.Status.Conditions = all })
}

// seedConditions returns the conditions of the Seed that runs in a Shoot.
func (r *ShootConditions) seedConditions(ctx context.Context, shoot types.NamespacedName) ([]corev1beta1.Condition, error) {
	managedSeeds := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.Client.List(ctx, managedSeeds, client.InNamespace(shoot.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the ManagedSeeds that may be in the Shoot %s: %w", shoot, err)
	}
	for _, managedSeed := range managedSeeds.Items {
		if managedSeed.Spec.Shoot == nil || managedSeed.Spec.Shoot.Name != shoot.Name {
			continue
		}
		seed := &corev1beta1.Seed{}
		if err := r.Client.Get(ctx, types.NamespacedName{Name: managedSeed.Name}, seed); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the Seed of the ManagedSeed %s: %w", managedSeed.Name, err)
		}
		return seed.Status.Conditions, nil
	}
	return nil, nil
}
