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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
)

const (
	// DefaultSyncPeriod is the period in which a set is reconciled, as in Gardener.
	DefaultSyncPeriod = 30 * time.Minute
	// DefaultMaxShootRetries is the maximum number of retries of a Shoot's failed operation, as in Gardener.
	DefaultMaxShootRetries = 3
)

// Reconciler maintains the replicas of ManagedSeedSets.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server of the garden, without the cache.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// SyncPeriod defaults to DefaultSyncPeriod.
	SyncPeriod time.Duration
	// MaxShootRetries defaults to DefaultMaxShootRetries.
	MaxShootRetries int32
}

// Reconcile performs the next step towards the desired replicas of a set.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &seedmanagementv1alpha1.ManagedSeedSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp == nil {
		if err := finalizers.Add(ctx, r.Client, set, corev1beta1.GardenerName); err != nil {
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
		return reconcile.Result{}, finalizers.Remove(ctx, r.Client, set, corev1beta1.GardenerName)
	}
	if statusErr := r.setStatus(ctx, set, step.status); err == nil {
		err = statusErr
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reconciling the ManagedSeedSet %s: %w", request, err)
	}
	return reconcile.Result{RequeueAfter: cmp.Or(r.SyncPeriod, DefaultSyncPeriod)}, nil
}

func (r *Reconciler) setStatus(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet,
	status *seedmanagementv1alpha1.ManagedSeedSetStatus) error {
	before := set.DeepCopy()
	set.Status = *status
	if equality.Semantic.DeepEqual(before.Status, set.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
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
