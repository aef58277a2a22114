package shoot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

const (
	// requeueWaiting is the delay before an operation checks again what it waits for. An event of the seed triggers the
	// check earlier.
	requeueWaiting = 5 * time.Second
	// requeueNodes is the interval between checks of a shoot's nodes, which are not watched.
	requeueNodes = time.Second
	// requeueSeed is the delay before the next check whether the seed is ready, as in Gardener.
	requeueSeed = 15 * time.Second
	// conflictRetry is the delay before an object is read again after a conflict.
	conflictRetry = 50 * time.Millisecond
)

// Reconciler reconciles the Shoots of a seed.
type Reconciler struct {
	controllerutils.Base
	// Identity is the name, ID and version of this gardenlet for the Shoots' status.
	Identity *corev1beta1.Gardener
	// ConcurrentSyncs is the number of Shoots that are reconciled at the same time, one if 0.
	ConcurrentSyncs int
	// NewShootClient creates a client for the API of a shoot. It defaults to a function of this package.
	NewShootClient func(*rest.Config, clock.PassiveClock) (*ShootClient, error)
	// Program returns the program of this machine that containers of an image run, "" if they are simulated.
	Program func(image string) string
	// SSHKeyBits is the length of the SSH keys for machines. It defaults to that of package shootsecrets.
	SSHKeyBits int
	// SyncPeriod is the period after which an unchanged Shoot is reconciled again, RetryDuration is how long a failed operation
	// is retried, and ProgressReportPeriod is the time between two reports of the progress of a flow.
	SyncPeriod, RetryDuration, ProgressReportPeriod time.Duration

	botanistCache botanistCache
}

// Reconcile reconciles one Shoot. It reads the Shoot live: objects in the seed may already depend on a status that the
// cache does not have yet.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenReader.Get(ctx, request.NamespacedName, shoot); apierrors.IsNotFound(err) {
		r.botanistCache.end(request.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if !r.isResponsibleFor(shoot) || r.hasFailed(shoot) {
		return reconcile.Result{}, nil
	}
	var wait time.Duration
	var err error
	switch {
	case moves(shoot) && (shoot.DeletionTimestamp == nil || isMigration(shoot.Status.LastOperation)):
		wait, err = r.migrate(ctx, shoot)
	case shoot.DeletionTimestamp != nil && !isBetweenSeeds(shoot.Status.LastOperation):
		wait, err = r.delete(ctx, shoot)
	default:
		wait, err = r.reconcile(ctx, shoot)
	}
	if err != nil {
		r.botanistCache.forget(shoot)
	}
	if apierrors.IsConflict(err) { // others write Shoots at any time
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return component.RequeueAfter(wait, err)
}

// responsible returns the seed whose gardenlet reconciles a Shoot: the seed in the status until that seed has released
// the Shoot, then the one in the spec.
func responsible(shoot *corev1beta1.Shoot) string {
	return ptr.Deref(cmp.Or(shoot.Status.SeedName, shoot.Spec.SeedName), "")
}

// isMigration reports whether the last operation is a migration.
func isMigration(last *corev1beta1.LastOperation) bool {
	return last != nil && last.Type == corev1beta1.LastOperationTypeMigrate
}

// isBetweenSeeds reports whether the last operation of a Shoot or BackupEntry says that another seed has released it, and
// that this seed has not restored it yet. This seed has no extension resources then with which its infrastructure could be
// deleted, so that it is restored first.
func isBetweenSeeds(last *corev1beta1.LastOperation) bool {
	return isMigration(last) ||
		last != nil && last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded
}

// moves reports whether a Shoot is to be migrated to another seed.
func moves(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.SeedName != nil && !ptr.Equal(shoot.Spec.SeedName, shoot.Status.SeedName)
}

// hasFailed reports whether the last operation has failed for good, and neither the Shoot nor the gardenlet has changed
// since.
func (r *Reconciler) hasFailed(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed &&
		shoot.Status.ObservedGeneration == shoot.Generation && shoot.Status.Gardener.Version == r.Identity.Version
}

func (r *Reconciler) reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	if wait := r.untilDue(ctx, shoot); wait > 0 {
		return wait, nil
	}
	if err := operation.AddFinalizer(ctx, r.GardenClient, shoot, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	t := operationType(shoot)
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return 0, fmt.Errorf("reading Seed %s of Shoot %s: %w", r.SeedName, client.ObjectKeyFromObject(shoot), err)
	}
	if stopped, err := strconv.ParseBool(seed.Annotations[constants.AnnotationEmergencyStopShootReconciliations]); err == nil && stopped {
		return r.SyncPeriod, nil
	}
	if why := r.unready(seed); why != "" {
		return requeueSeed, r.reportSeed(ctx, shoot, t, why)
	}
	b, err := r.begin(ctx, shoot, seed, t)
	if err != nil {
		return 0, err
	}
	if b == nil { // it has failed for good
		return 0, nil
	}
	done, wait, err := r.run(ctx, b, b.reconcileTasks())
	if !done || err != nil {
		return wait, err
	}
	if err := r.succeed(ctx, b); err != nil {
		return 0, err
	}
	if shoot.DeletionTimestamp != nil {
		return conflictRetry, nil
	}
	if hasTasks(shoot) { // they have waited for the end of this operation
		return requeueWaiting, nil
	}
	return r.untilNext(shoot), nil
}

// begin starts or continues an operation. It returns no botanist if the operation has failed for good.
func (r *Reconciler) begin(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed,
	t corev1beta1.LastOperationType) (*botanist, error) {
	if b := r.botanistCache.find(shoot, t); b != nil {
		return b, nil
	}
	a, err := r.prepare(ctx, shoot, seed)
	if err != nil {
		return nil, r.fail(ctx, shoot, t, err)
	}
	if err := r.start(ctx, shoot, t, a); err != nil {
		return nil, err
	}
	b := r.newBotanist(*a, t)
	b.shoot = shoot.DeepCopy() // the flow's tasks read it while its progress is written
	if b.asleep, err = b.isHibernated(ctx); err != nil {
		return nil, r.fail(ctx, shoot, t, err)
	}
	r.botanistCache.keep(b)
	return b, nil
}

// operationType returns the operation that a Shoot is due for. A Shoot that another seed has released is restored.
func operationType(shoot *corev1beta1.Shoot) corev1beta1.LastOperationType {
	if isBetweenSeeds(shoot.Status.LastOperation) {
		return corev1beta1.LastOperationTypeRestore
	}
	if t := operation.DueOperationType(&metav1.ObjectMeta{}, shoot.Status.LastOperation); t != "" {
		return t
	}
	return corev1beta1.LastOperationTypeReconcile // the last operation has no type
}

// unready returns why the seed cannot reconcile Shoots now, empty if it can. A seed in deletion still reconciles its
// Shoots.
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
		// It is Progressing for a moment after each reconciliation of the Seed.
		if c := conditions.Find(status.Conditions, kind); c.Status != corev1beta1.ConditionTrue && c.Status != corev1beta1.ConditionProgressing {
			return fmt.Sprintf("the Seed's condition %s is not True", kind)
		}
	}
	return ""
}

// delete deletes everything of a Shoot step by step, and returns the delay before the next step. It needs only the
// Shoot's status, so it does not fail if other objects are already gone.
func (r *Reconciler) delete(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName) {
		return 0, nil
	}
	const t = corev1beta1.LastOperationTypeDelete
	if !operation.Is(shoot.Status.LastOperation, t, corev1beta1.LastOperationStateSucceeded) {
		if shoot.Status.UID != "" && shoot.Status.TechnicalID != "" { // otherwise nothing was ever created
			if _, done, wait, err := r.release(ctx, shoot, t, (*botanist).deleteTasks); !done || err != nil {
				return wait, err
			}
		}
		// The garden allows the removal of the finalizer only after a successful deletion.
		if err := r.endDeletion(ctx, shoot); err != nil {
			return 0, err
		}
	}
	r.botanistCache.end(client.ObjectKeyFromObject(shoot))
	return 0, operation.RemoveFinalizers(ctx, r.GardenClient, shoot, corev1beta1.GardenerName)
}

// release runs a flow that needs nothing of the garden but the Shoot itself, and returns whether it is done. If it has to
// wait, it returns for how long.
func (r *Reconciler) release(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType,
	tasks func(*botanist) []flow.Task) (b *botanist, done bool, wait time.Duration, err error) {
	if b = r.botanistCache.find(shoot, t); b == nil {
		if err := r.start(ctx, shoot, t, nil); err != nil {
			return nil, false, 0, err
		}
		b = r.newBotanist(gardenData{shoot: shoot.DeepCopy()}, t)
		r.botanistCache.keep(b)
	}
	done, wait, err = r.run(ctx, b, tasks(b))
	return b, done, wait, err
}

// migrate releases a Shoot for another seed step by step, and returns the delay before the next step.
func (r *Reconciler) migrate(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	const t = corev1beta1.LastOperationTypeMigrate
	if !controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName) || shoot.Status.TechnicalID == "" {
		return 0, nil
	}
	if why := migrationBlocker(shoot); why != "" {
		logf.FromContext(ctx).Info("The Shoot does not move to its other seed yet", "why", why)
		return requeueSeed, nil
	}
	b, done, wait, err := r.release(ctx, shoot, t, (*botanist).migrateTasks)
	if !done || err != nil {
		return wait, err
	}
	return 0, r.succeed(ctx, b)
}

// requeueAfter returns the delay before the next check of what a flow waits for.
func requeueAfter(p flow.Progress) time.Duration {
	if slices.Contains(p.Waiting, stepNodesUpdated) {
		return requeueNodes
	}
	return requeueWaiting
}
