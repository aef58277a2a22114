package controllermanager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/component/schedule"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// shootHibernationName is the name of the controller, which is Gardener's.
const shootHibernationName = "shoot-hibernation"

// DefaultHibernationTriggerDeadline is how long ago a missed time may be to be made up for, the same as in Gardener.
const DefaultHibernationTriggerDeadline = 2 * time.Hour

// hibernationDelay is the delay after a scheduled time, because a clock that is adjusted may go back a little.
const hibernationDelay = 100 * time.Millisecond

// ShootHibernation hibernates and wakes up Shoots by the schedules in their specification, each in its own time zone.
// A time that was missed while the controller was down is made up for if it is not too long ago.
type ShootHibernation struct {
	kit.Base
	// TriggerDeadline is how long ago a missed time may be to be made up for, DefaultTriggerDeadline by default.
	TriggerDeadline time.Duration
}

// AddToManager adds the controller to the manager.
func (r *ShootHibernation) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootHibernationName)
	return component.NewControllerBuilder(mgr, shootHibernationName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(scheduled())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// scheduled passes new Shoots with schedules, and Shoots whose schedules have changed.
func scheduled() predicate.Predicate {
	passes := component.UpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return len(schedules(after)) > 0 && !equality.Semantic.DeepEqual(schedules(before), schedules(after))
	})
	passes.CreateFunc = func(e event.CreateEvent) bool { return len(schedules(e.Object.(*corev1beta1.Shoot))) > 0 }
	return passes
}

func schedules(shoot *corev1beta1.Shoot) []corev1beta1.HibernationSchedule {
	if shoot.Spec.Hibernation == nil {
		return nil
	}
	return shoot.Spec.Hibernation.Schedules
}

// Reconcile hibernates or wakes up the Shoot if one of its schedules is due, and requeues it for the next time of any
// schedule.
func (r *ShootHibernation) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil || len(schedules(shoot)) == 0 {
		return reconcile.Result{}, nil
	}
	all, err := schedule.HibernationsOf(shoot)
	if err != nil { // validation refuses such a Shoot, so there is no retry until it changes
		logf.FromContext(ctx).Error(err, "The schedules cannot be read; the Shoot is left as it is")
		return reconcile.Result{}, nil
	}
	now := r.Clock.Now()
	if !kit.IsFailed(shoot) {
		if s, found := dueSchedule(all, r.earliest(shoot, now), now); found {
			if err := r.set(ctx, shoot, s.Hibernates, now); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	if wait := untilNext(all, now); wait > 0 {
		return reconcile.Result{RequeueAfter: landscapeclock.UntilDue(r.Clock, now.Add(wait+hibernationDelay))}, nil
	}
	return reconcile.Result{}, nil
}

// earliest returns the time after which scheduled times count: the last trigger or the creation of the Shoot, but not
// before the trigger deadline.
func (r *ShootHibernation) earliest(shoot *corev1beta1.Shoot, now time.Time) time.Time {
	earliest := landscapeclock.At(r.Clock, shoot.CreationTimestamp.Time)
	if last := shoot.Status.LastHibernationTriggerTime; last != nil {
		earliest = last.Time
	}
	if deadline := now.Add(-cmp.Or(r.TriggerDeadline, DefaultHibernationTriggerDeadline)); deadline.After(earliest) {
		return deadline
	}
	return earliest
}

// set hibernates a Shoot or wakes it up, and records the trigger time.
func (r *ShootHibernation) set(ctx context.Context, shoot *corev1beta1.Shoot, hibernate bool, now time.Time) error {
	setEnabled := func(shoot *corev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = ptr.To(hibernate) }
	if err := operation.Patch(ctx, r.Client, shoot, setEnabled); err != nil {
		return fmt.Errorf("setting spec.hibernation.enabled of the Shoot %s/%s to %t, as its schedule says: %w",
			shoot.Namespace, shoot.Name, hibernate, err)
	}
	setTime := func(shoot *corev1beta1.Shoot) { shoot.Status.LastHibernationTriggerTime = &metav1.Time{Time: now} }
	if err := operation.PatchStatus(ctx, r.Client, shoot, setTime); err != nil {
		return fmt.Errorf("noting when the schedule of the Shoot %s/%s was followed: %w", shoot.Namespace, shoot.Name, err)
	}
	reason, message := corev1beta1.ShootEventHibernationDisabled, "Waking up, as the schedule says"
	if hibernate {
		reason, message = corev1beta1.ShootEventHibernationEnabled, "Hibernating, as the schedule says"
	}
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reason, corev1beta1.EventActionReconcile, "%s", message)
	return nil
}

// dueSchedule returns the schedule with the latest scheduled time after from and not after to. Of two with the same
// time, the first counts.
func dueSchedule(all []schedule.Hibernation, from, to time.Time) (due schedule.Hibernation, found bool) {
	var latest time.Time
	for _, s := range all {
		if last, ok := s.Last(from, to); ok && last.After(latest) {
			due, latest, found = s, last, true
		}
	}
	return due, found
}

// untilNext returns the duration until the next scheduled time of any schedule; 0 if there is none.
func untilNext(all []schedule.Hibernation, now time.Time) (wait time.Duration) {
	for _, s := range all {
		if next, ok := s.Next(now); ok && (wait == 0 || next.Sub(now) < wait) {
			wait = next.Sub(now)
		}
	}
	return wait
}
