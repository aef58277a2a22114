package controllermanager

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// shootMigrationName is the name of the controller, which is Gardener's.
const shootMigrationName = "shoot-migration"

// DefaultShootMigrationSyncPeriod is the period of the checks of a Shoot's destination, the same as in Gardener.
const DefaultShootMigrationSyncPeriod = 5 * time.Second

// ShootMigration maintains the constraint ReadyForMigration of a Shoot that is to move to another Seed: it is True if
// that Seed is ready for the Shoot. The gardenlet of the source begins the migration once the constraint is True, and
// the controller removes it when the Shoot does not move any more.
type ShootMigration struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootMigration) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootMigrationName)
	return component.NewControllerBuilder(mgr, shootMigrationName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(shootMoves())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// shootMoves passes Shoots that are assigned to another Seed, or whose constraint may be outdated.
func shootMoves() predicate.Predicate {
	outdated := func(shoot *corev1beta1.Shoot) bool {
		operation := shoot.Status.LastOperation
		migrating := operation != nil && operation.Type == corev1beta1.LastOperationTypeMigrate
		return !migrating && conditions.Get(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration) != nil
	}
	passes := component.UpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return !ptr.Equal(before.Spec.SeedName, after.Spec.SeedName) || outdated(after)
	})
	passes.CreateFunc = func(e event.CreateEvent) bool {
		shoot := e.Object.(*corev1beta1.Shoot)
		return isToMove(shoot) || outdated(shoot)
	}
	return passes
}

func isToMove(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.SeedName != nil && shoot.Status.SeedName != nil && *shoot.Spec.SeedName != *shoot.Status.SeedName
}

// Reconcile updates the constraint of a Shoot as long as it is to move, and removes it otherwise.
func (r *ShootMigration) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !isToMove(shoot) {
		rest, _ := conditions.Without(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
		return reconcile.Result{}, r.setConstraints(ctx, shoot, rest)
	}
	constraint, err := r.constraint(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("looking whether the Shoot %s can move: %w", client.ObjectKeyFromObject(shoot), err)
	}
	constraints, _ := conditions.Set(shoot.Status.Constraints, constraint, r.Clock)
	return component.RequeueAfter(DefaultShootMigrationSyncPeriod, r.setConstraints(ctx, shoot, constraints))
}

// constraint returns the constraint of the Shoot. Of the source Seed, only the version of Gardener counts.
func (r *ShootMigration) constraint(ctx context.Context, shoot *corev1beta1.Shoot) (corev1beta1.Condition, error) {
	source, destination := &corev1beta1.Seed{}, &corev1beta1.Seed{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: *shoot.Status.SeedName}, source); err != nil {
		return corev1beta1.Condition{}, fmt.Errorf("reading the Seed %s, where it is: %w", *shoot.Status.SeedName, err)
	}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: *shoot.Spec.SeedName}, destination); err != nil {
		return corev1beta1.Condition{}, fmt.Errorf("reading the Seed %s, where it is to move: %w", *shoot.Spec.SeedName, err)
	}
	c := corev1beta1.Condition{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionFalse}
	if destination.DeletionTimestamp != nil {
		c.Reason, c.Message = "DestinationSeedInDeletion", fmt.Sprintf("The Seed %s is being deleted", destination.Name)
	} else if err := isReadyForShoot(destination, source); err != nil {
		c.Reason, c.Message = "DestinationSeedUnready", fmt.Sprintf("The Seed %s is not ready: %s", destination.Name, err)
	} else {
		c.Status, c.Reason, c.Message = corev1beta1.ConditionTrue, "DestinationSeedReady",
			fmt.Sprintf("The Seed %s is ready for the Shoot", destination.Name)
	}
	return c, nil
}

// isReadyForShoot returns an error unless the destination can take over control planes from the source.
func isReadyForShoot(destination, source *corev1beta1.Seed) error {
	to, from := destination.Status.Gardener, source.Status.Gardener
	switch {
	case to == nil || from == nil:
		return fmt.Errorf("it, or the Seed %s, does not tell yet which version of Gardener it has", source.Name)
	case to.Version != from.Version:
		return fmt.Errorf("it has version %s of Gardener, the Seed %s has %s", to.Version, source.Name, from.Version)
	case destination.Status.ObservedGeneration < destination.Generation:
		return fmt.Errorf("its gardenlet has seen generation %d of %d", destination.Status.ObservedGeneration, destination.Generation)
	}
	return kit.CheckSeedConditions(destination)
}

// setConstraints patches with an optimistic lock, because gardenlets write constraints, too.
func (r *ShootMigration) setConstraints(ctx context.Context, shoot *corev1beta1.Shoot, constraints []corev1beta1.Condition) error {
	return client.IgnoreNotFound(operation.PatchStatusExclusively(ctx, r.Client, shoot,
		func(shoot *corev1beta1.Shoot) { shoot.Status.Constraints = constraints }))
}
