package shootcare

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/shootaccess"
)

const (
	// DefaultSyncPeriod is how often a Shoot is looked at without an occasion.
	DefaultSyncPeriod = 30 * time.Second
	// hurry is how often one is looked at with which not all is well, if that is less.
	hurry = 10 * time.Second
)

// Reconciler looks how the Shoots of a seed are.
type Reconciler struct {
	GardenClient client.Client
	// GardenReader asks the garden itself.
	GardenReader client.Reader
	// SeedClient lists from a cache; Secrets live.
	SeedClient client.Reader
	// Shoots are the clients of the Shoots' API servers.
	Shoots   *shootaccess.Cache
	Clock    clock.WithTicker
	SeedName string
	// ConcurrentSyncs is how many Shoots are looked at at a time, one by default.
	ConcurrentSyncs int
	// SyncPeriod is DefaultSyncPeriod by default.
	SyncPeriod time.Duration
	// Thresholds say for how long a condition is Progressing before it is False. There are none by default.
	Thresholds map[corev1beta1.ConditionType]time.Duration
	// ProgressingThreshold, if not nil, is how long a ManagedResource may be rolled out.
	ProgressingThreshold *metav1.Duration
}

// Reconcile looks at one Shoot, writes what has changed, and is requeued for when the period is over. One that
// hibernates is looked at again when it does not any more.
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
		found = sleeping(shoot)
	} else {
		found = r.checkShoot(ctx, shoot)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, context.Cause(ctx)
	}
	pardon(shoot, found.conditions)
	pardon(shoot, found.constraints)
	if err := r.write(ctx, shoot, found); err != nil {
		return reconcile.Result{}, err
	}
	if asleep {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: r.next(found)}, nil
}

// isResponsibleFor says whether a Shoot is on the seed, as far as the seed's gardenlet has picked it up.
func (r *Reconciler) isResponsibleFor(shoot *corev1beta1.Shoot) bool {
	return ptr.Deref(shoot.Status.SeedName, "") == r.SeedName && shoot.Status.TechnicalID != ""
}

func hibernates(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.IsHibernated || shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

func isWorkerless(shoot *corev1beta1.Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

func (r *Reconciler) period() time.Duration {
	if r.SyncPeriod > 0 {
		return r.SyncPeriod
	}
	return DefaultSyncPeriod
}

func (r *Reconciler) next(found findings) time.Duration {
	for _, all := range [][]conditions.Condition{found.conditions, found.constraints} {
		for _, c := range all {
			if c.Status != corev1beta1.ConditionTrue {
				return min(hurry, r.period())
			}
		}
	}
	return r.period()
}

// findings are the conditions and constraints that a Shoot has now. What is in neither and of ours, it has not any more.
type findings struct{ conditions, constraints []conditions.Condition }

// ours are the types that this controller writes.
var (
	ourConditions = []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
		corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
	}
	ourConstraints = []corev1beta1.ConditionType{
		corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied,
		corev1beta1.ShootCACertificateValiditiesAcceptable,
		corev1beta1.ShootCRDsWithProblematicConversionWebhooks, corev1beta1.ShootManualInPlaceWorkersUpdated,
		corev1beta1.ShootHasIgnoredManagedResources,
	}
)

// write writes what has changed, and leaves the conditions of others alone.
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

// gone says whether a Shoot has gone, or gone elsewhere, while it was looked at: nothing of it is this gardenlet's to write
// any more.
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

// pardon makes of a failure a progress where it is no wonder: as long as a Shoot is made or deleted, or something is done
// with it and nothing has failed yet.
func pardon(shoot *corev1beta1.Shoot, all []conditions.Condition) {
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
