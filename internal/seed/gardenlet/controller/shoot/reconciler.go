package shoot

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/extensions/operation"
)

const (
	// DefaultSync is how often a Shoot is looked after without an occasion; Gardener's.
	DefaultSync = time.Hour
	// DefaultRetryDuration is for how long an operation is tried again; Gardener's.
	DefaultRetryDuration = 12 * time.Hour
	// DefaultWait is after what time it is looked again whether something in the seed has gone; Gardener's.
	DefaultWait = 5 * time.Second
	// DefaultSeedWait is after what time it is looked again whether the seed is ready; Gardener's.
	DefaultSeedWait = 15 * time.Second
	// DefaultProgressReportPeriod is how much time is between two reports of how far a flow is.
	DefaultProgressReportPeriod = 5 * time.Second
	// conflictRetry is after what time what somebody else has just written is read again.
	conflictRetry = 50 * time.Millisecond
)

// Reconciler looks after the Shoots of a seed.
type Reconciler struct {
	GardenClient, SeedClient client.Client
	// GardenReader and SeedReader ask the garden and the seed themselves.
	GardenReader, SeedReader client.Reader
	Clock                    clock.WithTicker
	SeedName                 string
	Recorder                 events.EventRecorder
	// Identity is who the gardenlet is, with its version.
	Identity *corev1beta1.Gardener
	// ConcurrentSyncs is how many Shoots are worked on at a time, one by default.
	ConcurrentSyncs int
	// These are the defaults above by default.
	Sync, RetryDuration, Wait, SeedWait, ProgressReportPeriod time.Duration
}

// Reconcile looks after one Shoot. It is read anew: what the cache does not know yet of its status could be in the seed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenReader.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.concerns(shoot) || r.hasFailed(shoot) {
		return reconcile.Result{}, nil
	}
	var wait time.Duration
	var err error
	switch {
	case shoot.DeletionTimestamp != nil:
		wait, err = r.delete(ctx, shoot)
	case moves(shoot):
	default:
		wait, err = r.reconcile(ctx, shoot)
	}
	if apierrors.IsConflict(err) { // others write Shoots at any time
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return component.After(wait, err)
}

// responsible is the seed whose gardenlet looks after a Shoot: the one that it is on, until it has been released there.
func responsible(shoot *corev1beta1.Shoot) string {
	if shoot.Status.SeedName != nil {
		return *shoot.Status.SeedName
	}
	return ptr.Deref(shoot.Spec.SeedName, "")
}

// moves says whether a Shoot is on the way to another seed.
func moves(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.SeedName != nil && !ptr.Equal(shoot.Spec.SeedName, shoot.Status.SeedName)
}

// hasFailed says whether there is no use in trying: nothing has changed since, here or in the Shoot.
func (r *Reconciler) hasFailed(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed &&
		shoot.Status.ObservedGeneration == shoot.Generation && shoot.Status.Gardener.Version == r.Identity.Version
}

func (r *Reconciler) reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	if err := operation.AddFinalizer(ctx, r.GardenClient, shoot, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	t := operation.Type(shoot, shoot.Status.LastOperation)
	if t == "" { // the last operation was none
		t = corev1beta1.LastOperationTypeReconcile
	}
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return 0, fmt.Errorf("reading Seed %s of Shoot %s: %w", r.SeedName, client.ObjectKeyFromObject(shoot), err)
	}
	if stopped, err := strconv.ParseBool(seed.Annotations[constants.AnnotationEmergencyStopShootReconciliations]); err == nil && stopped {
		return r.sync(), nil
	}
	if why := r.unready(seed); why != "" {
		return orDefault(r.SeedWait, DefaultSeedWait), r.reportSeed(ctx, shoot, t, why)
	}
	about, err := r.prepare(ctx, shoot, seed)
	if err != nil {
		return 0, r.fail(ctx, shoot, t, err)
	}
	if err := r.start(ctx, shoot, t, about); err != nil {
		return 0, err
	}
	about.shoot = shoot.DeepCopy() // the flow's tasks read it while its progress is written
	progress, err := r.run(ctx, shoot, "Shoot cluster reconciliation", firstStep, r.reconcileTasks(about))
	switch {
	case ctx.Err() != nil:
		return 0, err
	case err != nil:
		return 0, r.fail(ctx, shoot, t, err)
	case len(progress.Waiting) > 0:
		return r.wait(), r.report(ctx, shoot, firstStep, progress)
	}
	return r.sync(), r.endFirstStep(ctx, shoot)
}

// unready says why the seed cannot have Shoots now. One that is being deleted is good enough for those that it has.
func (r *Reconciler) unready(seed *corev1beta1.Seed) string {
	status := &seed.Status
	switch {
	case seed.DeletionTimestamp != nil:
		return ""
	case status.Gardener == nil || *status.Gardener != *r.Identity:
		return "this gardenlet has not looked after the Seed yet"
	case status.ObservedGeneration < seed.Generation:
		return fmt.Sprintf("the Seed is not up to date (generation %d of %d)", status.ObservedGeneration, seed.Generation)
	}
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.GardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		if !conditions.IsTrue(status.Conditions, kind) {
			return fmt.Sprintf("the Seed's condition %s is not True", kind)
		}
	}
	return ""
}

// delete removes what there is of a Shoot, as far as it goes: it says after what time it goes on. It needs nothing but what
// is in the Shoot's status, so whatever else has gone meanwhile does not keep it.
func (r *Reconciler) delete(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName) {
		return 0, nil
	}
	const t = corev1beta1.LastOperationTypeDelete
	if !operation.Is(shoot.Status.LastOperation, t, corev1beta1.LastOperationStateSucceeded) {
		if shoot.Status.UID != "" { // else there has never been anything
			if wait, err := r.clear(ctx, shoot, t); wait > 0 || err != nil || r.hasFailed(shoot) {
				return wait, err
			}
		}
		// The garden lets the finalizer go only after a deletion that has succeeded.
		if err := r.endDeletion(ctx, shoot); err != nil {
			return 0, err
		}
	}
	return 0, operation.RemoveFinalizers(ctx, r.GardenClient, shoot, corev1beta1.GardenerName)
}

// clear removes everything of a Shoot. If it has to wait it says for how long.
func (r *Reconciler) clear(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType) (time.Duration, error) {
	if err := r.start(ctx, shoot, t, nil); err != nil {
		return 0, err
	}
	progress, err := r.run(ctx, shoot, "Shoot cluster deletion", 100, r.deleteTasks(shoot.DeepCopy()))
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return 0, r.fail(ctx, shoot, t, err)
	case len(progress.Waiting) > 0:
		return r.wait(), r.report(ctx, shoot, 100, progress)
	}
	return 0, nil
}

func (r *Reconciler) sync() time.Duration { return orDefault(r.Sync, DefaultSync) }

func (r *Reconciler) wait() time.Duration { return orDefault(r.Wait, DefaultWait) }

func orDefault(set, otherwise time.Duration) time.Duration {
	if set > 0 {
		return set
	}
	return otherwise
}
