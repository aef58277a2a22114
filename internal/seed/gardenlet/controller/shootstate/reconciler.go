package shootstate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "shoot-state"

// jitter divides the period into the time over which Shoots are spread: half an hour of six hours, as in Gardener.
const jitter = 12

// Reconciler writes the ShootStates of a seed's Shoots.
type Reconciler struct {
	controllerutils.Base
	// ConcurrentSyncs is the number of Shoots that are reconciled at the same time.
	ConcurrentSyncs int
	// SyncPeriod is the period in which a ShootState is written.
	SyncPeriod time.Duration
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, becomesReady())).
		Complete(r)
}

// becomesReady returns a predicate for the creation of a Shoot, and for updates by which it becomes ready or changes its
// seed.
func becomesReady() predicate.Predicate {
	return component.ChangesIf(func(before, now *corev1beta1.Shoot) bool {
		return !isReady(before) && isReady(now) || !ptr.Equal(before.Spec.SeedName, now.Spec.SeedName)
	})
}

// Reconcile writes the ShootState of one Shoot if it is due, and requeues the Shoot for the next write.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != r.SeedName || ptr.Deref(shoot.Status.SeedName, "") != r.SeedName || !isReady(shoot) {
		return reconcile.Result{}, nil // it is requeued when this changes
	}
	if managed, err := r.isManagedSeed(ctx); err != nil || managed {
		return component.RequeueAfter(r.SyncPeriod, err)
	}
	state := &corev1beta1.ShootState{}
	if err := r.GardenReader.Get(ctx, request.NamespacedName, state); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading ShootState %s: %w", request, err)
	}
	if wait := r.writtenAt(state).Add(r.SyncPeriod).Sub(r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.write(ctx, shoot, state); err != nil {
		return reconcile.Result{}, err
	}
	spread := r.SyncPeriod / jitter
	return reconcile.Result{RequeueAfter: r.SyncPeriod - spread/2 + rand.N(spread+1)}, nil
}

// isReady reports whether a Shoot has been created, and is neither deleted nor being migrated.
func isReady(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if shoot.DeletionTimestamp != nil || last == nil || shoot.Status.TechnicalID == "" {
		return false
	}
	switch last.Type {
	case corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeRestore:
		return last.State == corev1beta1.LastOperationStateSucceeded
	case corev1beta1.LastOperationTypeReconcile:
		return true
	}
	return false
}

// writtenAt returns when the ShootState was written last, minus half of the jitter, by which the next write may be early.
func (r *Reconciler) writtenAt(state *corev1beta1.ShootState) time.Time {
	at, err := time.Parse(time.RFC3339, state.Annotations[constants.GardenerTimestamp])
	if err != nil { // there is none, or it has no timestamp: it is due
		return time.Time{}
	}
	return at.Add(-r.SyncPeriod / jitter / 2)
}

// isManagedSeed reports whether the seed is a Shoot of the garden.
func (r *Reconciler) isManagedSeed(ctx context.Context) (bool, error) {
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.SeedName}
	err := r.GardenReader.Get(ctx, key, &seedmanagementv1alpha1.ManagedSeed{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking whether the seed is a Shoot, by ManagedSeed %s: %w", key, err)
	}
	return err == nil, nil
}

func (r *Reconciler) write(ctx context.Context, shoot *corev1beta1.Shoot, state *corev1beta1.ShootState) error {
	spec, err := r.spec(ctx, shoot, state)
	if err != nil {
		return fmt.Errorf("putting together the ShootState of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	before := state.DeepCopy()
	state.Name, state.Namespace, state.Spec = shoot.Name, shoot.Namespace, *spec
	return extensionops.WriteShootState(ctx, r.GardenClient, state, before, r.Clock.Now())
}
