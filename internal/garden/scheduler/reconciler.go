package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciler schedules one Shoot at a time.
type reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	strategy Strategy
	// backoff determines when a Shoot that was not scheduled is tried again, if nothing changes before.
	backoff workqueue.TypedRateLimiter[reconcile.Request]
	// reserved makes each decision aware of the previous ones.
	reserved reservations
}

// Reconcile binds the Shoot to a seed, or reports in its status why no seed is eligible.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			r.backoff.Forget(request)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading Shoot %s: %w", request, err)
	}
	if !waits(shoot) {
		r.backoff.Forget(request)
		return reconcile.Result{}, nil
	}
	err := r.schedule(ctx, shoot)
	switch {
	case err == nil:
		r.backoff.Forget(request)
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil:
		// The Shoot has changed meanwhile, or the scheduler stops: this is not reported to the Shoot's owner.
		logf.FromContext(ctx).V(1).Info("Trying again", "reason", err.Error())
	default:
		logf.FromContext(ctx).Info("Shoot was not scheduled", "reason", err.Error())
		r.report(ctx, shoot, err)
	}
	return reconcile.Result{RequeueAfter: r.backoff.When(request)}, nil
}

// waits reports whether a Shoot waits for this scheduler. A self-hosted Shoot never has a seed.
func waits(shoot *gardencorev1beta1.Shoot) bool {
	selfHosted := slices.ContainsFunc(shoot.Spec.Provider.Workers, func(w gardencorev1beta1.Worker) bool { return w.ControlPlane != nil })
	return !selfHosted && shoot.Spec.SeedName == nil && shoot.DeletionTimestamp == nil &&
		ptr.Deref(shoot.Spec.SchedulerName, v1beta1constants.DefaultSchedulerName) == v1beta1constants.DefaultSchedulerName
}

func (r *reconciler) schedule(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	landscape, err := r.landscape(ctx, shoot)
	if err != nil {
		return err
	}
	var seed string
	var reasons Reasons
	settled := r.reserved.decide(shoot, func() ([]gardencorev1beta1.Shoot, error) { return r.shoots(ctx) },
		func(count func() (map[string]int, error)) string {
			landscape.Count = count
			seed, reasons = Choose(*landscape)
			return seed
		})
	switch {
	case settled:
		return nil
	case seed == "":
		return errors.New(reasons.String())
	}
	return r.bind(ctx, shoot, seed)
}

func (r *reconciler) bind(ctx context.Context, shoot *gardencorev1beta1.Shoot, seed string) error {
	bound := shoot.DeepCopy()
	bound.Spec.SeedName = &seed
	if err := r.client.SubResource("binding").Update(ctx, bound); err != nil {
		r.reserved.fail(shoot.UID, refused(err))
		return fmt.Errorf("binding the Shoot to seed %s: %w", seed, err)
	}
	r.reserved.confirm(shoot.UID)
	logf.FromContext(ctx).Info("Shoot is scheduled", "seed", seed)
	r.recorder.Eventf(bound, nil, corev1.EventTypeNormal, gardencorev1beta1.ShootEventSchedulingSuccessful,
		gardencorev1beta1.EventActionReconcile, "Scheduled to seed %q", seed)
	return nil
}

// refused reports whether the API server has certainly not bound the Shoot. If it has not answered, or the answer is
// inconclusive, the place on the seed stays reserved.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err)
}

// maxEventNote is the maximum length of an event's note, in bytes.
const maxEventNote = 1024

// report writes an event and the Shoot's status, which say why the Shoot has no seed.
func (r *reconciler) report(ctx context.Context, shoot *gardencorev1beta1.Shoot, cause error) {
	description := "Failed to schedule Shoot: " + cause.Error()
	r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, gardencorev1beta1.ShootEventSchedulingFailed,
		gardencorev1beta1.EventActionReconcile, "%s", shorten(description, maxEventNote))

	last := shoot.Status.LastOperation
	if last != nil && last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State == gardencorev1beta1.LastOperationStatePending && last.Description == description {
		return
	}
	// The optimistic lock prevents this update if another client has bound the Shoot meanwhile.
	patch := client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type:           gardencorev1beta1.LastOperationTypeCreate,
		State:          gardencorev1beta1.LastOperationStatePending,
		LastUpdateTime: metav1.NewTime(r.clock.Now()),
		Description:    description,
	}
	if err := r.client.Status().Patch(ctx, shoot, patch); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		logf.FromContext(ctx).Error(err, "The Shoot's status does not say why it was not scheduled")
	}
}

// shorten truncates a text to at most size bytes, between two runes.
func shorten(text string, size int) string {
	const more = "..."
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size-len(more)], "") + more
}
