package shoot

import (
	"context"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// effectiveEnd is how long before the end of a maintenance time window nothing is begun any more; Gardener's.
const effectiveEnd = 15 * time.Minute

// rests says for how long nothing is to be done for a Shoot: it is as it was asked to be, and its time to be looked after
// has not come. Whatever has happened to its namespace, it is made good.
func (r *Reconciler) rests(ctx context.Context, shoot *corev1beta1.Shoot) time.Duration {
	last := shoot.Status.LastOperation
	if hasTasks(shoot) || last == nil || last.State != corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeMigrate ||
		shoot.Status.ObservedGeneration != shoot.Generation || shoot.Status.Gardener.Version != r.Identity.Version {
		return 0
	}
	namespace := &corev1.Namespace{}
	err := r.SeedClient.Get(ctx, client.ObjectKey{Name: shoot.Status.TechnicalID}, namespace)
	if apierrors.IsNotFound(err) || namespace.DeletionTimestamp != nil {
		return 0
	}
	if window := confinedTo(shoot); window != nil {
		if window.Contains(r.Clock.Now()) && !window.Contains(last.LastUpdateTime.Time) || window.Contains(r.Clock.Now()) &&
			r.Clock.Since(last.LastUpdateTime.Time) > window.Duration() {
			return 0
		}
		return r.untilNext(shoot)
	}
	return last.LastUpdateTime.Add(r.sync()).Sub(r.Clock.Now())
}

// untilNext is when a Shoot is looked after next without an occasion.
func (r *Reconciler) untilNext(shoot *corev1beta1.Shoot) time.Duration {
	if window := confinedTo(shoot); window != nil {
		return max(window.RandomDurationUntilNext(r.Clock.Now(), false), time.Second)
	}
	return r.sync()
}

// confinedTo is the time window in which alone changes of a Shoot are rolled out, nil if that is at any time.
func confinedTo(shoot *corev1beta1.Shoot) *timewindow.MaintenanceTimeWindow {
	m := shoot.Spec.Maintenance
	if m == nil || !ptr.Deref(m.ConfineSpecUpdateRollout, false) || m.TimeWindow == nil {
		return nil
	}
	window, err := timewindow.ParseMaintenanceTimeWindow(m.TimeWindow.Begin, m.TimeWindow.End)
	if err != nil {
		return nil
	}
	return window.WithEnd(window.End().Add(0, -int(effectiveEnd/time.Minute), 0))
}
