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
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

const (
	// DefaultSync is how often a Shoot is looked after without an occasion; Gardener's.
	DefaultSync = time.Hour
	// DefaultRetryDuration is for how long an operation is tried again; Gardener's.
	DefaultRetryDuration = 12 * time.Hour
	// DefaultWait is the delay before an operation checks again what it waits for, if no event of the seed triggers that
	// before.
	DefaultWait = 5 * time.Second
	// DefaultNodesWait is the interval between checks of a shoot's nodes, which are not watched.
	DefaultNodesWait = time.Second
	// DefaultSeedWait is the delay before it is checked again whether the seed is ready; Gardener's.
	DefaultSeedWait = 15 * time.Second
	// DefaultProgressReportPeriod is how much time is between two reports of how far a flow is.
	DefaultProgressReportPeriod = 5 * time.Second
	// conflictRetry is the delay before an object is read again after a conflict.
	conflictRetry = 50 * time.Millisecond
)

// Reconciler reconciles the Shoots of a seed.
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
	// NewShootClient makes clients for the APIs of shoots; a function of this package by default.
	NewShootClient func(*rest.Config) (*ShootClient, error)
	// SSHKeyBits is the length of the keys to machines, that of package shootsecrets by default.
	SSHKeyBits int
	// These are the defaults above by default.
	Sync, RetryDuration, Wait, NodesWait, SeedWait, ProgressReportPeriod time.Duration

	botanistCache botanistCache
}

// Reconcile reconciles one Shoot. It is read anew: what the cache does not know yet of its status could be in the seed.
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
	case moves(shoot) && (shoot.DeletionTimestamp == nil || lastIs(shoot, corev1beta1.LastOperationTypeMigrate)):
		wait, err = r.migrate(ctx, shoot)
	case shoot.DeletionTimestamp != nil && !isAdrift(shoot):
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
	return component.After(wait, err)
}

// responsible is the seed whose gardenlet reconciles a Shoot: the one that it is on, until it has been released there.
func responsible(shoot *corev1beta1.Shoot) string {
	if shoot.Status.SeedName != nil {
		return *shoot.Status.SeedName
	}
	return ptr.Deref(shoot.Spec.SeedName, "")
}

func lastIs(shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.Type == t
}

// isAdrift says whether a Shoot is between two seeds: what there is of it where it really is has no resource here from which
// it could be deleted, so it is restored before.
func isAdrift(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return lastIs(shoot, corev1beta1.LastOperationTypeMigrate) ||
		lastIs(shoot, corev1beta1.LastOperationTypeRestore) && last.State != corev1beta1.LastOperationStateSucceeded
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
	if wait := r.rests(ctx, shoot); wait > 0 {
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
		return r.sync(), nil
	}
	if why := r.unready(seed); why != "" {
		return orDefault(r.SeedWait, DefaultSeedWait), r.reportSeed(ctx, shoot, t, why)
	}
	b, err := r.begin(ctx, shoot, seed, t)
	if err != nil {
		return 0, err
	}
	if b == nil { // it has failed for good
		return 0, nil
	}
	names := map[corev1beta1.LastOperationType]string{corev1beta1.LastOperationTypeRestore: "Shoot cluster restoration"}
	done, wait, err := r.run(ctx, b, cmp.Or(names[t], "Shoot cluster reconciliation"), b.reconcileTasks())
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
		return orDefault(r.Wait, DefaultWait), nil
	}
	return r.untilNext(shoot), nil
}

// begin begins an operation, or continues with it. There is no botanist if it has failed for good.
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
	if b.asleep, err = b.sleeps(ctx); err != nil {
		return nil, r.fail(ctx, shoot, t, err)
	}
	r.botanistCache.keep(shoot, t, b)
	return b, nil
}

// operationType is the operation that a Shoot is due for: one that another seed has released is restored.
func operationType(shoot *corev1beta1.Shoot) corev1beta1.LastOperationType {
	if isAdrift(shoot) {
		return corev1beta1.LastOperationTypeRestore
	}
	if t := operation.Type(&metav1.ObjectMeta{}, shoot.Status.LastOperation); t != "" {
		return t
	}
	return corev1beta1.LastOperationTypeReconcile // the last operation was none
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

// delete removes what there is of a Shoot step by step, and returns the delay before the next step. It needs nothing
// but what is in the Shoot's status, so whatever else has gone meanwhile does not keep it.
func (r *Reconciler) delete(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName) {
		return 0, nil
	}
	const t = corev1beta1.LastOperationTypeDelete
	if !operation.Is(shoot.Status.LastOperation, t, corev1beta1.LastOperationStateSucceeded) {
		if shoot.Status.UID != "" && shoot.Status.TechnicalID != "" { // else there has never been anything
			if done, wait, err := r.clear(ctx, shoot, t); !done || err != nil {
				return wait, err
			}
		}
		// The garden lets the finalizer go only after a deletion that has succeeded.
		if err := r.endDeletion(ctx, shoot); err != nil {
			return 0, err
		}
	}
	r.botanistCache.end(shoot)
	return 0, operation.RemoveFinalizers(ctx, r.GardenClient, shoot, corev1beta1.GardenerName)
}

// clear removes everything of a Shoot, and says whether nothing is left. If it has to wait it says for how long.
func (r *Reconciler) clear(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType) (
	done bool, wait time.Duration, err error) {
	b := r.botanistCache.find(shoot, t)
	if b == nil {
		if err := r.start(ctx, shoot, t, nil); err != nil {
			return false, 0, err
		}
		b = r.newBotanist(about{shoot: shoot.DeepCopy()}, t)
		r.botanistCache.keep(shoot, t, b)
	}
	return r.run(ctx, b, "Shoot cluster deletion", b.deleteTasks())
}

// migrate lets a Shoot go that moves to another seed, as far as it goes.
func (r *Reconciler) migrate(ctx context.Context, shoot *corev1beta1.Shoot) (time.Duration, error) {
	const t = corev1beta1.LastOperationTypeMigrate
	if !controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName) || shoot.Status.TechnicalID == "" {
		return 0, nil
	}
	if why := mayMove(shoot); why != "" {
		logf.FromContext(ctx).Info("The Shoot does not move to its other seed yet", "why", why)
		return orDefault(r.SeedWait, DefaultSeedWait), nil
	}
	b := r.botanistCache.find(shoot, t)
	if b == nil {
		if err := r.start(ctx, shoot, t, nil); err != nil {
			return 0, err
		}
		b = r.newBotanist(about{shoot: shoot.DeepCopy()}, t)
		r.botanistCache.keep(shoot, t, b)
	}
	done, wait, err := r.run(ctx, b, "Shoot cluster preparation for migration", b.migrateTasks())
	if !done || err != nil {
		return wait, err
	}
	return 0, r.succeed(ctx, b)
}

func (r *Reconciler) sync() time.Duration { return orDefault(r.Sync, DefaultSync) }

// wait is the delay before the next check at what a flow waits for.
func (r *Reconciler) wait(p flow.Progress) time.Duration {
	if slices.Contains(p.Waiting, stepNodesUpdated) {
		return orDefault(r.NodesWait, DefaultNodesWait)
	}
	return orDefault(r.Wait, DefaultWait)
}

func orDefault(set, otherwise time.Duration) time.Duration {
	if set > 0 {
		return set
	}
	return otherwise
}
