package managedseed

import (
	"context"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// Default durations, as in Gardener.
const (
	DefaultSyncPeriod       = time.Hour
	DefaultWaitSyncPeriod   = 15 * time.Second
	DefaultSyncJitterPeriod = 5 * time.Minute
)

// Reconciler reconciles the ManagedSeeds of a seed. Deployer is required.
type Reconciler struct {
	GardenClient client.Client
	// GardenReader reads directly from the garden, not from a cache.
	GardenReader client.Reader
	// GardenREST has the address and CA of the garden for the deployed gardenlets. Credentials in it are ignored.
	GardenREST *rest.Config
	Clock      clock.WithTicker
	SeedName   string
	Recorder   events.EventRecorder
	// Config is the configuration of this gardenlet, from which deployed gardenlets inherit if their ManagedSeed says
	// so.
	Config   *gardenletconfigv1alpha1.GardenletConfiguration
	Deployer deployment.Deployer
	// ShootKubeconfig returns a kubeconfig for the cluster of a Shoot. If it is nil, the Deployer uses its own cluster
	// for the seed.
	ShootKubeconfig func(context.Context, *corev1beta1.Shoot) ([]byte, error)
	// SyncPeriod is the period of reconciliations, WaitSyncPeriod the period while a ManagedSeed waits for something.
	SyncPeriod, WaitSyncPeriod time.Duration
	// SyncJitterPeriod is the maximum delay of unchanged ManagedSeeds when the gardenlet starts; with JitterUpdates,
	// also of changed ones.
	SyncJitterPeriod time.Duration
	JitterUpdates    bool
	// TokenValidity defaults to deployment.DefaultTokenValidity.
	TokenValidity time.Duration

	gone operation.DeletedObjects
}

// Reconcile reconciles one ManagedSeed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, managedSeed); err != nil {
		r.gone.Forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.gone.Is(managedSeed) {
		return reconcile.Result{}, nil
	}
	if managedSeed.Spec.Shoot == nil || managedSeed.Namespace != constants.GardenNamespace {
		return reconcile.Result{}, nil
	}
	shoot := &corev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name}
	if err := r.GardenReader.Get(ctx, key, shoot); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading Shoot %s of ManagedSeed %s: %w", key, request, err)
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != r.SeedName {
		logf.FromContext(ctx).V(1).Info("Not for this gardenlet: the Shoot is on another seed", "shoot", key)
		return reconcile.Result{}, nil
	}
	s := &step{Reconciler: r, managedSeed: managedSeed, shoot: shoot, generation: managedSeed.Generation}
	var wait time.Duration
	var err error
	if managedSeed.DeletionTimestamp != nil {
		wait, err = s.delete(ctx)
	} else {
		wait, err = s.reconcile(ctx)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// step is the reconciliation of a ManagedSeed as it was read.
type step struct {
	*Reconciler
	managedSeed *seedmanagementv1alpha1.ManagedSeed
	shoot       *corev1beta1.Shoot
	generation  int64
}

func (s *step) reconcile(ctx context.Context) (time.Duration, error) {
	if err := operation.AddFinalizer(ctx, s.GardenClient, s.managedSeed, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	shoot := client.ObjectKeyFromObject(s.shoot)
	if !reconciled(s.shoot) {
		message := fmt.Sprintf("Waiting for shoot %q to be reconciled", shoot)
		s.event(corev1.EventTypeNormal, corev1beta1.EventReconciling, corev1beta1.EventActionReconcile, message)
		return s.waitSyncPeriod(),
			s.report(ctx, condition(seedmanagementv1alpha1.ManagedSeedShootReconciled, false, corev1beta1.EventReconciling, message))
	}
	ready := condition(seedmanagementv1alpha1.ManagedSeedShootReconciled, true, corev1beta1.EventReconciled,
		fmt.Sprintf("Shoot %q has been reconciled", shoot))
	if err := s.install(ctx); err != nil {
		return 0, s.failed(ctx, corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile, err, ready)
	}
	return orDefault(s.SyncPeriod, DefaultSyncPeriod), s.report(ctx, ready,
		condition(seedmanagementv1alpha1.SeedRegistered, true, corev1beta1.EventReconciled,
			fmt.Sprintf("Seed %s has been registered", s.managedSeed.Name)))
}

func reconciled(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return shoot.Generation == shoot.Status.ObservedGeneration && last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// failed reports an error in an event and in the condition SeedRegistered, and returns it for a retry.
func (s *step) failed(ctx context.Context, reason, action string, err error, others ...conditions.Condition) error {
	s.event(corev1.EventTypeWarning, reason, action, err.Error())
	if statusErr := s.report(
		ctx, append(others, condition(seedmanagementv1alpha1.SeedRegistered, false, reason, err.Error()))...); statusErr != nil {
		logf.FromContext(ctx).Error(statusErr, "Writing the status of a ManagedSeed")
	}
	return err
}

func (s *step) report(ctx context.Context, now ...conditions.Condition) error {
	return operation.PatchStatus(ctx, s.GardenClient, s.managedSeed, func(managedSeed *seedmanagementv1alpha1.ManagedSeed) {
		managedSeed.Status.ObservedGeneration = s.generation
		for _, c := range now {
			managedSeed.Status.Conditions, _ = conditions.Set(managedSeed.Status.Conditions, c, s.Clock)
		}
	})
}

func (s *step) event(severity, reason, action, message string) {
	s.Recorder.Eventf(s.managedSeed, nil, severity, reason, action, "%s", message)
}

func condition(kind corev1beta1.ConditionType, is bool, reason, message string) conditions.Condition {
	status := corev1beta1.ConditionFalse
	if is {
		status = corev1beta1.ConditionTrue
	}
	return conditions.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func (r *Reconciler) waitSyncPeriod() time.Duration {
	return orDefault(r.WaitSyncPeriod, DefaultWaitSyncPeriod)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
