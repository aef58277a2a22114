package managedseedset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "managedseedset"

const (
	// DefaultSyncPeriod is the period in which a set is reconciled, as in Gardener.
	DefaultSyncPeriod = 30 * time.Minute
	// DefaultMaxShootRetries is the maximum number of retries of a Shoot's failed operation, as in Gardener.
	DefaultMaxShootRetries = 3
)

// Reconciler maintains the replicas of ManagedSeedSets.
type Reconciler struct {
	kit.Base
	// MaxShootRetries defaults to DefaultMaxShootRetries.
	MaxShootRetries int32
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	toSet := handler.EnqueueRequestsFromMapFunc(ownerOf)
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&seedmanagementv1alpha1.ManagedSeedSet{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.Shoot{}, toSet, builder.WithPredicates(stateChanged(shootState))).
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, toSet, builder.WithPredicates(stateChanged(managedSeedState))).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.setOf), builder.WithPredicates(stateChanged(isSeedReady))).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// stateChanged passes deletions, and updates that change the state or set the deletion timestamp.
func stateChanged[T client.Object, S comparable](state func(T) S) predicate.Predicate {
	return component.DeletionsAndUpdatesIf(func(before, after T) bool {
		return state(before) != state(after) || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
	})
}

// shootState returns the state of a Shoot that is relevant for its set.
func shootState(shoot *corev1beta1.Shoot) [2]string {
	return [2]string{statusOf(shoot, nil).String(), health(shoot)}
}

// managedSeedState returns the state of a ManagedSeed that is relevant for its set.
func managedSeedState(managedSeed *seedmanagementv1alpha1.ManagedSeed) status {
	return statusOf(&corev1beta1.Shoot{}, managedSeed)
}

// setOf returns a request for the ManagedSeedSet to whose ManagedSeed a Seed belongs.
func (r *Reconciler) setOf(ctx context.Context, seed client.Object) []reconcile.Request {
	if managedSeed := r.ManagedSeedOf(ctx, seed); managedSeed != nil {
		return ownerOf(ctx, managedSeed)
	}
	return nil
}

// ownerOf returns a request for the ManagedSeedSet that is the controller of a Shoot or ManagedSeed.
func ownerOf(_ context.Context, obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "ManagedSeedSet" {
		return nil
	}
	return kit.RequestFor(obj.GetNamespace(), owner.Name)
}

// Reconcile performs the next step towards the desired replicas of a set.
func (r *Reconciler) Reconcile(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet) (reconcile.Result, error) {
	if set.DeletionTimestamp == nil {
		if err := operation.AddFinalizer(ctx, r.Client, set, corev1beta1.GardenerName); err != nil {
			return reconcile.Result{}, err
		}
	} else if !controllerutil.ContainsFinalizer(set, corev1beta1.GardenerName) {
		return reconcile.Result{}, nil
	}
	step := &step{Reconciler: r, set: set, status: set.Status.DeepCopy()}
	step.status.ObservedGeneration = set.Generation
	done, err := step.take(ctx)
	if err != nil {
		r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile, "%s", err.Error())
	}
	if done && set.DeletionTimestamp != nil {
		return reconcile.Result{}, operation.RemoveFinalizers(ctx, r.Client, set, corev1beta1.GardenerName)
	}
	err = cmp.Or(err, operation.PatchStatus(ctx, r.Client, set,
		func(set *seedmanagementv1alpha1.ManagedSeedSet) { set.Status = *step.status }))
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reconciling the ManagedSeedSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	return reconcile.Result{RequeueAfter: DefaultSyncPeriod}, nil
}

// step is one reconciliation of one ManagedSeedSet.
type step struct {
	*Reconciler
	set *seedmanagementv1alpha1.ManagedSeedSet
	// status is the new status of the set.
	status    *seedmanagementv1alpha1.ManagedSeedSetStatus
	scalingIn bool
}

// take performs the step, and returns whether nothing is left to do.
func (s *step) take(ctx context.Context) (done bool, err error) {
	replicas, err := s.replicas(ctx, s.set)
	if err != nil {
		return false, err
	}
	slices.SortFunc(replicas, func(a, b *replica) int {
		return cmp.Compare(ordinal(s.set, a.shoot.Name), ordinal(s.set, b.shoot.Name))
	})
	want := 0
	if s.set.DeletionTimestamp == nil {
		want = int(ptr.Deref(s.set.Spec.Replicas, 1))
	}
	s.scalingIn = len(replicas) > want
	pending, rest := s.sorted(replicas)
	if pending != nil {
		if waits, err := s.advance(ctx, pending); err != nil || waits {
			return false, err
		}
	}
	switch {
	case len(replicas) < want:
		return false, s.create(ctx, replicas)
	case s.scalingIn:
		return false, s.remove(ctx, replicas)
	}
	for _, one := range rest {
		if waits, err := s.advance(ctx, one); err != nil || waits {
			return false, err
		}
	}
	s.status.PendingReplica = nil
	return true, nil
}

// sorted sets the numbers of replicas in the status, and returns the pending replica and the other replicas that are
// not ready.
func (s *step) sorted(replicas []*replica) (pending *replica, rest []*replica) {
	s.status.Replicas, s.status.ReadyReplicas = int32(len(replicas)), 0 // #nosec G115 -- a garden has fewer Shoots.
	for _, one := range replicas {
		is := s.status.PendingReplica != nil && s.status.PendingReplica.Name == one.shoot.Name
		if is {
			pending = one
		}
		if one.isReady() {
			s.status.ReadyReplicas++
		} else if !is {
			rest = append(rest, one)
		}
	}
	if pending == nil {
		s.status.PendingReplica = nil // The pending replica has been deleted.
	}
	return pending, rest
}
