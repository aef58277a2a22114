package shoot

import (
	"context"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// effectiveEnd is how long before the end of a maintenance time window nothing begins any more, as in Gardener.
const effectiveEnd = 15 * time.Minute

// untilDue returns the time until the next regular reconciliation of a Shoot. It is not positive if a reconciliation is
// due: regularly, because the Shoot is not as requested, because its API server listens at another port, or because its namespace in the
// seed is missing.
func (r *Reconciler) untilDue(ctx context.Context, shoot *corev1beta1.Shoot) time.Duration {
	last := shoot.Status.LastOperation
	if hasTasks(shoot) || last == nil || last.State != corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeMigrate ||
		shoot.Status.ObservedGeneration != shoot.Generation || shoot.Status.Gardener.Version != r.Identity.Version ||
		shoot.Status.Gardener.Name != r.Identity.Name { // Gardener's gardenlet was here before
		return 0
	}
	namespace := &corev1.Namespace{}
	err := r.SeedClient.Get(ctx, client.ObjectKey{Name: shoot.Status.TechnicalID}, namespace)
	if apierrors.IsNotFound(err) || namespace.DeletionTimestamp != nil {
		return 0
	}
	service := &corev1.Service{}
	err = r.SeedClient.Get(ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: spec.ServiceName}, service)
	if endpoint := spec.Endpoint(service); err == nil && endpoint != "" && len(shoot.Status.AdvertisedAddresses) > 0 &&
		!slices.ContainsFunc(shoot.Status.AdvertisedAddresses, func(a corev1beta1.ShootAdvertisedAddress) bool {
			return a.Name == constants.AdvertisedAddressExternal && a.URL == "https://"+endpoint
		}) {
		return 0
	}
	if window := rolloutWindow(shoot); window != nil {
		if window.Contains(r.Clock.Now()) &&
			(!window.Contains(last.LastUpdateTime.Time) || r.Clock.Since(last.LastUpdateTime.Time) > window.Duration()) {
			return 0
		}
		return r.untilNext(shoot)
	}
	wait := last.LastUpdateTime.Add(r.SyncPeriod).Sub(r.Clock.Now())
	if left := landscapeclock.UntilArrival(r.Clock); wait <= 0 && left > time.Second { // what is skipped leaves nothing to repair
		return min(left-time.Second, r.SyncPeriod) // the queue is a moment late
	}
	return wait
}

// untilNext returns the time until the next regular reconciliation after a success.
func (r *Reconciler) untilNext(shoot *corev1beta1.Shoot) time.Duration {
	if window := rolloutWindow(shoot); window != nil {
		return max(window.RandomDurationUntilNext(r.Clock.Now(), false), time.Second)
	}
	return r.SyncPeriod
}

// rolloutWindow returns the maintenance time window if changes of the Shoot are rolled out only in it, and nil if they are
// rolled out at any time.
func rolloutWindow(shoot *corev1beta1.Shoot) *timewindow.MaintenanceTimeWindow {
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
