package shootmaintenance

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-maintenance"

// lastMinutes shifts the end of a time window, in minutes: no maintenance begins in its last 15 minutes, so that it
// ends within the window.
const lastMinutes = -15

// Reconciler maintains Shoots.
type Reconciler struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(toBeMaintained())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// toBeMaintained passes Shoots that are created, whose time window has changed, or for which a maintenance is
// requested.
func toBeMaintained() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return isRequested(after) && !isRequested(before) || !equality.Semantic.DeepEqual(configured(before), configured(after))
	})
}

func configured(shoot *corev1beta1.Shoot) *corev1beta1.MaintenanceTimeWindow {
	if shoot.Spec.Maintenance == nil {
		return nil
	}
	return shoot.Spec.Maintenance.TimeWindow
}

// window returns the time window in which maintenances of a Shoot begin: always, if the Shoot does not specify one.
func window(shoot *corev1beta1.Shoot) *timewindow.MaintenanceTimeWindow {
	spec := configured(shoot)
	if spec == nil {
		return timewindow.AlwaysTimeWindow
	}
	window, err := timewindow.ParseMaintenanceTimeWindow(spec.Begin, spec.End)
	if err != nil {
		return timewindow.AlwaysTimeWindow
	}
	return window.WithEnd(window.End().Add(0, lastMinutes, 0))
}

// Reconcile maintains a Shoot if its window is open or a maintenance is requested, and requeues it for a random time in
// the next window, so that not all Shoots with the same window are maintained at once.
func (r *Reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := r.Clock.Now()
	if isRequested(shoot) || window(shoot).Contains(now) {
		if err := r.maintain(ctx, shoot, now); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("maintaining the Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
		}
	}
	next := now.Add(window(shoot).RandomDurationUntilNext(now, false))
	return reconcile.Result{RequeueAfter: landscapeclock.UntilDue(r.Clock, next)}, nil
}

func (r *Reconciler) maintain(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) error {
	profile, err := profileOf(ctx, r.Client, shoot)
	if err != nil {
		return err
	}
	m := &maintenance{before: shoot, shoot: shoot.DeepCopy(), profile: profile, now: now}
	m.plan(ctx, r.Client)
	if m.isNews() {
		// A dry run shows whether the garden accepts the changed Shoot.
		if err := r.Client.Patch(ctx, m.shoot.DeepCopy(), lock(m.before), client.DryRunAll); isRefusal(err) {
			return r.refused(ctx, m, err)
		} else if err != nil {
			return err
		}
		description, failure := m.describe()
		last := &corev1beta1.LastMaintenance{Description: description, TriggeredTime: metav1.NewTime(now),
			State: corev1beta1.LastOperationStateProcessing}
		if failure != "" {
			last.State, last.FailureReason = corev1beta1.LastOperationStateFailed, &failure
		}
		// write patches what the API server answers here: it must be the Shoot from which the changes were derived.
		if err := operation.PatchStatusExclusively(ctx, r.Client, shoot,
			func(shoot *corev1beta1.Shoot) { shoot.Status.LastMaintenance = last }); err != nil {
			return err
		}
	}
	if err := r.write(ctx, m); err != nil {
		r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, corev1beta1.ShootMaintenanceFailed,
			corev1beta1.EventActionReconcile, "%s", err.Error())
		return err
	}
	if err := r.setLast(ctx, shoot, m.outcome()); err != nil {
		return err
	}
	r.recordEvents(m)
	logf.FromContext(ctx).Info("Maintained the Shoot", "parts", len(m.results))
	return nil
}

// isRefusal reports whether the garden refuses the object itself, so that a retry does not help.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// lock returns a patch that fails if the Shoot has changed in the meantime, because the changes were derived from its
// former state.
func lock(before *corev1beta1.Shoot) client.Patch {
	return client.MergeFromWithOptions(before.DeepCopy(), client.MergeFromWithOptimisticLock{})
}

// refused records why a Shoot is not changed until its next window, and removes the request for a maintenance. A new
// request is possible.
func (r *Reconciler) refused(ctx context.Context, m *maintenance, why error) error {
	shoot := m.before
	if isRequested(shoot) {
		before := shoot.DeepCopy()
		asked := &maintenance{shoot: shoot}
		asked.setOperations(without(split(shoot.Annotations[constants.GardenerOperation], constants.GardenerOperationsSeparator),
			constants.ShootOperationMaintain))
		if err := r.Client.Patch(ctx, shoot, lock(before)); err != nil {
			return fmt.Errorf("removing the request for it: %w", err)
		}
	}
	logf.FromContext(ctx).Info("The garden refuses what the maintenance would change", "why", why.Error())
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeWarning, corev1beta1.ShootMaintenanceFailed,
		corev1beta1.EventActionReconcile, "%s", why.Error())
	return r.setLast(ctx, shoot, &corev1beta1.LastMaintenance{
		Description: "Maintenance failed", TriggeredTime: metav1.NewTime(m.now), State: corev1beta1.LastOperationStateFailed,
		FailureReason: ptr.To(fmt.Sprintf("The garden refuses the Shoot as the maintenance would change it: %s", why)),
	})
}

// write patches the Shoot. It uses the resource version after the status update of this controller.
func (r *Reconciler) write(ctx context.Context, m *maintenance) error {
	before := m.before.DeepCopy()
	m.before.Spec, m.before.Annotations = *m.shoot.Spec.DeepCopy(), m.shoot.Annotations
	if err := r.Client.Patch(ctx, m.before, lock(before)); err != nil {
		return fmt.Errorf("writing what the maintenance changes: %w", err)
	}
	return nil
}

// outcome returns the last maintenance after all changes are written. A former failure becomes a success if this
// maintenance had nothing to do.
func (m *maintenance) outcome() *corev1beta1.LastMaintenance {
	last := m.before.Status.LastMaintenance.DeepCopy()
	if last == nil {
		return nil
	}
	switch {
	case last.State == corev1beta1.LastOperationStateProcessing:
		last.State = corev1beta1.LastOperationStateSucceeded
	case last.State == corev1beta1.LastOperationStateFailed && !m.isNews():
		last.State, last.Description, last.FailureReason = corev1beta1.LastOperationStateSucceeded, "Maintenance succeeded", nil
	}
	return last
}

func (r *Reconciler) setLast(ctx context.Context, shoot *corev1beta1.Shoot, last *corev1beta1.LastMaintenance) error {
	return operation.PatchStatus(ctx, r.Client, shoot, func(shoot *corev1beta1.Shoot) { shoot.Status.LastMaintenance = last })
}

// recordEvents records an event for each update, and for each one that failed.
func (r *Reconciler) recordEvents(m *maintenance) {
	for _, result := range m.results {
		switch {
		case result.event == "":
		case result.failure != "":
			r.Recorder.Eventf(m.before, nil, corev1.EventTypeWarning, result.event, corev1beta1.EventActionReconcile,
				"%s. Error: %s", result, result.failure)
		default:
			r.Recorder.Eventf(m.before, nil, corev1.EventTypeNormal, result.event, corev1beta1.EventActionReconcile, "%s", result)
		}
	}
}
